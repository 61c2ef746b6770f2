// Pods of the job itself serve a dataset from memory. This plugin decides how many and how large
// these pods are (Kubeflow Trainer, pkg/initializers/dataset/cache.py, and pkg/data_cache for what
// they run). The pod with index 0 is the head, to which the trainer connects; the others are its
// workers.
#include "runtimes/plugins/data_cache/data_cache.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/check_items.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/plugins/data_cache/sizes.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/plugins/torch/torchtune.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

using kube::Json;

constexpr int kPort = 50051;  // Arrow Flight's port, in the head and in the workers
constexpr std::string_view kRole = "IAM_ROLE";
// This annotation of a runtime has the roles that its jobs may name, separated by commas.
constexpr std::string_view kRolesAnnotation = "trainer.kubeflow.org/data-cache-iam-roles";

// Returns the replicated job that may serve the dataset.
std::optional<Cache> dataset_job(const Draft& draft) {
  auto index = draft.find_ancestor(kCacheStep);
  if (!index && cached_dataset(draft.job) != nullptr) index = draft.find_ancestor(kDatasetStep);
  if (!index) return std::nullopt;
  return Cache{*index, dataset_container(draft, *index)};
}

// Returns the replicated job that serves the dataset; nullopt if the dataset is fetched instead, by
// a dataset initializer that is not sizable.
std::optional<Cache> cache_of(const Draft& draft) {
  auto cache = dataset_job(draft);
  if (!cache || draft.container(cache->job, cache->container) == nullptr) return std::nullopt;
  const bool is_cache =
      draft.pod_sets[cache->job].ancestor == kCacheStep || is_sizable(draft, *cache);
  return is_cache ? cache : std::nullopt;
}

bool is_listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    if (item.substr(0, item.find_last_not_of(' ') + 1) == name) return true;
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
  return false;
}

// Returns the role that the job names and its runtime allows.
std::optional<std::string> role_of(const Draft& draft, kube::FieldErrors& errors) {
  const auto role = setting_of(draft, kRole);
  if (!role) return std::nullopt;
  const auto& annotations = draft.runtime.metadata.annotations;
  const auto allowed = annotations.find(kRolesAnnotation);
  if (allowed != annotations.end() && !role->value.empty() &&
      is_listed(allowed->second, role->value))
    return std::string(role->value);
  errors.push_back(kube::invalid(
      role->path, role->value,
      fmt::format("{} \"{}\" does not allow this {}: choose one of its annotation {}, ask an admin "
                  "to add it there, or leave it out and give the table's credentials in "
                  "spec.initializer.dataset.secretRef",
                  draft.runtime.kind, draft.runtime.metadata.name, kRole, kRolesAnnotation)));
  return std::nullopt;
}

// Injects what EKS' webhook injects for a service account with the role, without that account. The
// AWS libraries exchange the token for the role's credentials (amazon-eks-pod-identity-webhook).
void assume_role(Draft& draft, const Cache& cache, const std::string& role) {
  constexpr std::string_view kVolume = "aws-iam-token";
  constexpr std::string_view kDirectory = "/var/run/secrets/eks.amazonaws.com/serviceaccount";
  const Json token =
      Json::object({{"serviceAccountToken", Json::object({{"audience", "sts.amazonaws.com"},
                                                          {"expirationSeconds", 86400},
                                                          {"path", "token"}})}});
  draft.upsert_volume(
      cache.job,
      Json::object(
          {{"name", kVolume}, {"projected", Json::object({{"sources", Json::array({token})}})}}),
      kDatasetEnv);
  auto container = draft.edit(cache.job, cache.container, kDatasetEnv);
  container->env("AWS_ROLE_ARN", role);
  container->env("AWS_WEB_IDENTITY_TOKEN_FILE", fmt::format("{}/token", kDirectory));
  container->env("AWS_STS_REGIONAL_ENDPOINTS", "regional");
  container->mount(
      Json::object({{"name", kVolume}, {"mountPath", kDirectory}, {"readOnly", true}}));
}

// Guides for Trainer 2.1 use the address "cache-initializer-0:50051", which no pod has here: the
// head's replaces it.
void set_endpoints(Draft& draft, const Cache& cache, std::size_t index, std::string_view source) {
  auto node = draft.edit(index, kNode, source);
  if (!node) return;
  constexpr std::string_view kScheme = "grpc://";
  const std::string printed = draft.pod_sets[cache.job].name + "-0:";
  const std::string host = draft.first_host(cache.job) + ":";
  for (const std::string_view name : {"DATA_CACHE_ENDPOINT", "CACHE_ENDPOINT"}) {
    const Json* variable = kube::find_env(node->json(), name);
    std::string_view value = variable == nullptr ? "" : variable->get_string("value");
    const std::string_view scheme = value.starts_with(kScheme) ? kScheme : "";
    value.remove_prefix(scheme.size());
    if (value.starts_with(printed))
      node->env(name, fmt::format("{}{}{}", scheme, host, value.substr(printed.size())));
  }
  if (kube::find_env(node->json(), "CACHE_ENDPOINT") == nullptr)
    node->env("CACHE_ENDPOINT", fmt::format("{}{}{}", kScheme, host, kPort));
}

// Makes "JOB-cache-service", by which upstream's notebook reaches the head.
DependentObject service_of(const Draft& draft, const Cache& cache) {
  DependentObject service;
  service.mode = DependentObject::Mode::kCreateOnce;
  service.resource = kube::kServices;
  service.object = Json::object(
      {{"apiVersion", kube::kServices.api_version()},
       {"kind", kube::kServices.kind},
       {"metadata", Json::object({{"name", draft.name() + "-cache-service"},
                                  {"namespace", draft.job.metadata.ns}})},
       {"spec", Json::object({{"selector", Json::object({{jobset::kJobSetNameKey, draft.name()},
                                                         {jobset::kReplicatedJobNameKey,
                                                          draft.pod_sets[cache.job].name},
                                                         {kCompletionIndexKey, "0"}})},
                              {"ports", Json::array({Json::object({{"name", "grpc"},
                                                                   {"protocol", "TCP"},
                                                                   {"port", kPort},
                                                                   {"targetPort", kPort}})})}})}});
  return service;
}

const MlPolicy& torch_policy() {
  static const MlPolicy kTorch = [] {
    MlPolicy policy;
    policy.torch.emplace();
    return policy;
  }();
  return kTorch;
}

class DataCache final : public Plugin {
 public:
  std::string_view source() const override { return "plugin data_cache"; }
  bool is_active(const Draft& draft) const override { return dataset_job(draft).has_value(); }
  const MlPolicy* implied_ml_policy(const Draft& draft) const override;
  void enforce_pod_spec(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
  void warn_runtime(const Runtime& runtime, std::vector<std::string>& warnings) const override;
};

}  // namespace

const InitializerSource* cached_dataset(const TrainJob& job) {
  if (!job.spec.initializer || !job.spec.initializer->dataset) return nullptr;
  const InitializerSource& dataset = *job.spec.initializer->dataset;
  return dataset.storageUri.value_or("").starts_with("cache://") ? &dataset : nullptr;
}

std::string_view dataset_step(const Draft& draft) {
  return cached_dataset(draft.job) != nullptr && draft.find_ancestor(kCacheStep) ? kCacheStep
                                                                                 : kDatasetStep;
}

std::string dataset_container(const Draft& draft, std::size_t index) {
  const std::string& step = draft.pod_sets[index].ancestor;
  const auto& containers = draft.pod_template(index).get("spec").get_array("containers");
  const bool is_first = step == kCacheStep && !containers.empty() &&
                        kube::find_any_container(draft.pod_template(index), step) == nullptr;
  return is_first ? std::string(containers[0].get_string("name")) : step;
}

// Guides for Trainer 2.1 have runtimes with a cache without mlPolicy, and start torchrun.
const MlPolicy* DataCache::implied_ml_policy(const Draft& draft) const {
  if (!draft.find_ancestor(kCacheStep) || torchtune::is_torchtune(draft.command)) return nullptr;
  const bool starts_torchrun = what_starts(command_line_of(draft)) == Starts::kProcesses ||
                               draft.job.metadata.annotations.contains(kLauncherAnnotation);
  return starts_torchrun ? &torch_policy() : nullptr;
}

void DataCache::enforce_pod_spec(Draft& draft) const {
  const auto cache = cache_of(draft);
  if (!cache) return;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i)
    if (draft.pod_sets[i].ancestor == kTrainerStep) set_endpoints(draft, *cache, i, source());
  // A cache never ends by itself, so the trainer alone decides about success.
  if (const auto trainer = draft.find_ancestor(kTrainerStep); trainer && !draft.spec.successPolicy)
    draft.spec.successPolicy = SuccessPolicy{"All", {draft.pod_sets[*trainer].name}, {}};
  // The refused sizes are no errors: a job that was created before these rules runs with the
  // runtime's sizes, and without its role.
  Sizes sizes = sizes_of(draft, *cache, draft.ignored);
  bool are_kept = are_stored(draft, *cache, sizes);
  if (!are_kept && are_stored(draft, *cache, {})) {
    // An earlier version made the JobSet, which did not read the sizes.
    refuse_sizes(draft, *cache, draft.ignored);
    sizes = {};
    are_kept = true;
  }
  if (sizes.pods) {
    draft.set_count(cache->job, *sizes.pods, kDatasetEnv);
    draft.edit(cache->job, cache->container, kDatasetEnv)
        ->env(kGroupSize, std::to_string(*sizes.pods));
  }
  if (!sizes.resources.is_null())
    draft.edit(cache->job, cache->container, kDatasetEnv)->set("resources", sizes.resources);
  if (const auto role = role_of(draft, draft.ignored)) assume_role(draft, *cache, *role);
  // The job got its queue's label after the JobSet was made.
  if (!are_kept)
    draft.errors.insert(draft.errors.end(), draft.ignored.begin(), draft.ignored.end());
}

void DataCache::add_dependents(Draft& draft) const {
  if (const auto cache = cache_of(draft)) draft.dependents.push_back(service_of(draft, *cache));
}

void DataCache::validate(const Draft& draft, kube::FieldErrors& errors) const {
  const auto cache = cache_of(draft);
  if (!cache) return;
  sizes_of(draft, *cache, errors);
  role_of(draft, errors);
}

void DataCache::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const Cache cache = *dataset_job(draft);
  const Json* container = draft.container(cache.job, cache.container);
  if (container == nullptr) return;
  const std::string_view image = container->get_string("image");
  const std::string_view name = image.substr(image.rfind('/') + 1);
  if (name.substr(0, name.find_first_of(":@")) == kDatasetStep)
    warnings.push_back(fmt::format(
        "spec.runtimeRef: image {} of job {} creates a LeaderWorkerSet, for which another operator "
        "is needed, and ends: no pod of this job serves the dataset. Use image "
        "ghcr.io/kubeflow/trainer/data-cache as runtime torch-distributed-with-cache does, which "
        "`trainer runtimes torch-distributed-with-cache` prints",
        image, draft.pod_sets[cache.job].name));
  if (setting_of(draft, kClusterSize) && !is_sizable(draft, cache))
    warnings.push_back(fmt::format(
        "{}: {} and the amounts beside it size no pod, because container {} of runtime \"{}\" has "
        "no variable {}",
        kDatasetEnv, kClusterSize, cache.container, draft.runtime.metadata.name, kGroupSize));
  // The torch plugin warns about a Python command only if it is active.
  const bool is_torch =
      !has_framework(draft.ml_policy()) && what_starts(command_line_of(draft)) == Starts::kPython;
  if (is_torch && draft.pod_sets[cache.job].ancestor == kCacheStep)
    warn_about_command(draft, *torch_policy().torch, warnings);
}

// The pods of a cache find each other by their index in one Job. Admission refuses several replicas
// of other jobs that initialize or train.
void DataCache::warn_runtime(const Runtime& runtime, std::vector<std::string>& warnings) const {
  const auto& jobs = replicated_jobs_of(runtime);
  for (std::size_t i = 0; i < jobs.size() && warnings.size() < kube::kMaxWarnings; ++i)
    if (ancestor_of(jobs[i]) == kCacheStep && jobs[i].replica_count() != 1)
      warnings.push_back(fmt::format(
          "{}.replicas: {} has no effect where job {} serves a dataset, which one Job does; set 1, "
          "and as many pods in parallelism",
          kube::join_index("spec.template.spec.replicatedJobs", i), jobs[i].replica_count(),
          jobs[i].name));
}

std::unique_ptr<const Plugin> make_data_cache() {
  return std::make_unique<DataCache>();
}

}  // namespace trainer::pipeline
