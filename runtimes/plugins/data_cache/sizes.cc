#include "runtimes/plugins/data_cache/sizes.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/pod_template.hh"
#include "kube/model/text.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/plugins/data_cache/data_cache.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

using kube::Json;

// This is a resource, and the variables of the Python SDK's DataCacheInitializer for its amounts.
struct AmountVariables {
  std::string_view resource, head, worker;
};
constexpr AmountVariables kAmountVariables[] = {{"cpu", "HEAD_CPU", "WORKER_CPU"},
                                                {"memory", "HEAD_MEM", "WORKER_MEM"}};

class SizeReader {
 public:
  // `is_made` says that the JobSet exists with the runtime's sizes.
  SizeReader(const Draft& draft, const Cache& cache, bool is_made, kube::FieldErrors& errors)
      : draft_(draft),
        cache_(cache),
        container_(*draft.container(cache.job, cache.container)),
        is_made_(is_made),
        errors_(errors) {}

  Sizes read() {
    Sizes sizes;
    if (const auto count = setting_of(draft_, kClusterSize)) sizes.pods = pods_of(*count);
    for (const AmountVariables& names : kAmountVariables) read_amount(names, sizes);
    return sizes;
  }

 private:
  std::optional<std::int32_t> pods_of(const Setting& setting) {
    const auto pods = kube::parse_number<std::int32_t>(setting.value);
    if (!pods || *pods < 2 || *pods > kMaxPods) {
      refuse(setting, fmt::format("{} counts the cache's head and its workers: write a number from "
                                  "2 to {}, as a value",
                                  kClusterSize, kMaxPods));
      return std::nullopt;
    }
    check_kept(setting, *pods == draft_.pod_sets[cache_.job].count);
    return pods;
  }

  // Head and workers are one Job, so each pod gets the larger of both amounts. If the TrainJob has
  // no amount for a worker, the runtime's counts as the worker's.
  void read_amount(const AmountVariables& names, Sizes& sizes) {
    const auto head = setting_of(draft_, names.head);
    const auto worker = setting_of(draft_, names.worker);
    if (!head && !worker) return;
    const kube::Quantity own = own_amount(names.resource);
    const auto of_head = head ? amount_of(*head) : kube::Quantity();
    const auto of_worker = worker ? amount_of(*worker) : own;
    if (!of_head || !of_worker) return;
    const kube::Quantity amount = std::max(*of_head, *of_worker);
    check_kept(worker ? *worker : *head, amount == own);
    if (sizes.resources.is_null()) {
      sizes.resources = container_.get("resources");
      if (sizes.resources.is_null()) sizes.resources = Json::object();
    }
    for (const char* kind : {"requests", "limits"})
      sizes.resources[kind].set(names.resource, amount.to_string());
  }

  kube::Quantity own_amount(std::string_view resource) const {
    for (const char* kind : {"requests", "limits"}) {
      const kube::ResourceList amounts = kube::read_resources(container_, kind);
      if (const auto own = amounts.find(resource); own != amounts.end()) return own->second;
    }
    return {};
  }

  std::optional<kube::Quantity> amount_of(const Setting& setting) {
    const auto amount = kube::Quantity::parse(setting.value);
    if (amount && kube::Quantity() < *amount) return *amount;
    refuse(setting, "is no amount of a resource: write one such as 4 or 64Gi, as a value");
    return std::nullopt;
  }

  // No JobSet changes its pods. Kueue counts those of the runtime, and knows nothing about these
  // variables.
  void check_kept(const Setting& setting, bool is_runtimes) {
    if (is_runtimes) return;
    if (is_made_)
      return refuse(setting,
                    "the JobSet of this job was made with the runtime's sizes, and keeps its pods; "
                    "create the TrainJob anew for others");
    if (!draft_.job.metadata.labels.contains(kQueueLabel)) return;
    refuse(
        setting,
        fmt::format("with label {} the cache's pods are those that Kueue counts: {} of {} \"{}\", "
                    "with its resources; leave this out, or use a runtime whose cache has the "
                    "size",
                    kQueueLabel, draft_.pod_sets[cache_.job].count, draft_.runtime.kind,
                    draft_.runtime.metadata.name));
  }

  void refuse(const Setting& setting, std::string detail) {
    errors_.push_back(kube::invalid(setting.path, setting.value, std::move(detail)));
  }

  const Draft& draft_;
  const Cache& cache_;
  const Json& container_;
  bool is_made_;
  kube::FieldErrors& errors_;
};

}  // namespace

bool is_sizable(const Draft& draft, const Cache& cache) {
  const Json* container = draft.container(cache.job, cache.container);
  return container != nullptr && kube::find_env(*container, kGroupSize) != nullptr;
}

std::optional<Setting> setting_of(const Draft& draft, std::string_view name) {
  const InitializerSource* dataset = cached_dataset(draft.job);
  if (dataset == nullptr) return std::nullopt;
  for (std::size_t i = dataset->env.size(); i-- > 0;)
    if (dataset->env[i].get_string("name") == name)
      return Setting{dataset->env[i].get_string("value"),
                     kube::join_index(kDatasetEnv, i) + ".value"};
  return std::nullopt;
}

Sizes sizes_of(const Draft& draft, const Cache& cache, kube::FieldErrors& errors) {
  if (!is_sizable(draft, cache)) return {};
  const std::size_t before = errors.size();
  Sizes sizes = SizeReader(draft, cache, false, errors).read();
  return errors.size() == before ? sizes : Sizes();
}

bool are_stored(const Draft& draft, const Cache& cache, const Sizes& sizes) {
  if (draft.stored == nullptr) return true;
  const PodSet& pods = draft.pod_sets[cache.job];
  const Json& own = draft.container(cache.job, cache.container)->get("resources");
  const Json& desired = sizes.resources.is_null() ? own : sizes.resources;
  for (const Json& job : draft.stored->get("spec").get_array("replicatedJobs")) {
    if (job.get_string("name") != pods.name) continue;
    const Json& spec = job.get_path({"template", "spec"});
    if (spec.get_int("parallelism", 1) != sizes.pods.value_or(pods.count)) return false;
    const Json* container = kube::find_container(spec.get("template"), cache.container);
    if (container == nullptr) return true;
    const Json& stored = container->get("resources");
    return desired.get_object("requests") == stored.get_object("requests") &&
           desired.get_object("limits") == stored.get_object("limits");
  }
  return true;
}

void refuse_sizes(const Draft& draft, const Cache& cache, kube::FieldErrors& errors) {
  SizeReader(draft, cache, true, errors).read();
}

}  // namespace trainer::pipeline
