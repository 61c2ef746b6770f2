// This plugin makes a Flux instance that spans the nodes of a job (Kubeflow Trainer,
// pkg/runtime/framework/plugins/flux).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/digest.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/process_checks.hh"
#include "runtimes/plugins/flux/curve.hh"
#include "runtimes/plugins/flux/scripts.hh"

namespace trainer::pipeline {

namespace {

using kube::Json;

constexpr std::string_view kInstaller = "flux-installer";
// This image is a Spack view: Flux and the libraries that it needs, in one directory tree.
constexpr std::string_view kViewImage = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy";
constexpr int kExecutable = 0755;
constexpr int kOwnerRead = 0400;
constexpr std::size_t kMaxVolumeName = 63;

const FluxPolicy* policy_of(const Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->flux ? &*policy->flux : nullptr;
}

// Returns the replicated job whose pods form the instance.
std::optional<std::size_t> find_nodes(const Draft& draft) {
  const auto trainer = draft.find_ancestor(kTrainerStep);
  return trainer ? trainer : draft.find_job(kNode);
}

std::string entrypoint_name(const Draft& draft) {
  return draft.name() + "-flux-entrypoint";
}
std::string curve_name(const Draft& draft) {
  return draft.name() + "-flux-curve";
}

// Returns the name of its ConfigMap, unless that is too long for a volume.
std::string scripts_volume(const Draft& draft) {
  std::string name = entrypoint_name(draft);
  return name.size() <= kMaxVolumeName ? name : "flux-entrypoint";
}

// Returns the value of a variable of the training container, which has the TrainJob's env already.
// It returns `otherwise` if the variable is absent or empty, or has another source (valueFrom).
std::string env_or(const Json& container, std::string_view name, std::string_view otherwise) {
  for (const Json& variable : container.get_array("env"))
    if (variable.get_string("name") == name && !variable.get_string("value").empty())
      return std::string(variable.get_string("value"));
  return std::string(otherwise);
}

std::string joined(const std::vector<std::string>& words) {
  const std::string line = fmt::format("{}", fmt::join(words, " "));
  const std::size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : line.substr(first, line.find_last_not_of(' ') - first + 1);
}

bool is_plain(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./=:,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Returns whether the words are the same once they have been joined and split again. A command of
// one text, such as "python train.py", is meant to be split; upstream splits it, too.
bool can_be_joined(const std::vector<std::string>& words) {
  return words.empty() || words.front().find_first_of(" \t\n") != std::string::npos ||
         std::all_of(words.begin(), words.end(), is_plain);
}

// The entrypoint runs the runtime's or the job's command, with the job's arguments: as one string,
// like upstream, or after "--" word by word.
void wrap_command(Draft& draft, const ContainerEdit& container) {
  std::vector<std::string> words;
  if (draft.command) {
    words = *draft.command;
  } else {
    for (const Json& word : container.json().get_array("command"))
      if (word.is_string()) words.push_back(word.as_string());
  }
  if (draft.args) words.insert(words.end(), draft.args->begin(), draft.args->end());
  // The job's arguments are part of the command now. The runtime's stay in the container, and the
  // entrypoint appends them to the command.
  draft.args.reset();
  std::vector<std::string> wrapped{"/bin/bash", "/etc/flux-config/entrypoint.sh"};
  if (can_be_joined(words)) {
    wrapped.push_back(joined(words));
  } else {
    wrapped.emplace_back("--");
    wrapped.insert(wrapped.end(), words.begin(), words.end());
  }
  draft.command = std::move(wrapped);
}

Json mount(std::string_view volume, std::string_view path, bool is_read_only) {
  Json out = Json::object({{"name", volume}, {"mountPath", path}});
  if (is_read_only) out.set("readOnly", true);
  return out;
}

Json volume(std::string_view name, std::string_view kind, Json source) {
  return Json::object({{"name", name}, {std::string(kind), std::move(source)}});
}

void add_volumes(Draft& draft, std::size_t index, std::string_view source) {
  const Json scripts =
      Json::object({{"name", entrypoint_name(draft)}, {"defaultMode", kExecutable}});
  const Json keys = Json::object({{"secretName", curve_name(draft)}, {"defaultMode", kOwnerRead}});
  draft.upsert_volume(index, volume("spack-install", "emptyDir", Json::object()), source);
  draft.upsert_volume(index, volume("flux-install", "emptyDir", Json::object()), source);
  draft.upsert_volume(index, volume(scripts_volume(draft), "configMap", scripts), source);
  draft.upsert_volume(
      index, volume("shared-memory", "emptyDir", Json::object({{"medium", "Memory"}})), source);
  draft.upsert_volume(index, volume("flux-curve", "secret", keys), source);
}

void add_installer(Draft& draft, std::size_t index, std::string image, std::string_view source) {
  const Json mounts = Json::array({mount("flux-install", "/mnt/flux", false),
                                   mount(scripts_volume(draft), "/etc/flux-config", true)});
  draft.pod_template(index)["spec"]["initContainers"].push_back(
      Json::object({{"name", kInstaller},
                    {"image", std::move(image)},
                    {"command", Json::array({"/bin/bash", "/etc/flux-config/init.sh"})},
                    {"volumeMounts", mounts}}));
  if (draft.journal.is_on())
    draft.journal.note(fmt::format("{}.spec.initContainers[{}]", draft.pod_path(index), kInstaller),
                       source);
}

void add_mounts(const Draft& draft, ContainerEdit& container) {
  container.mount(mount("flux-install", "/mnt/flux", false));
  container.mount(mount("spack-install", "/opt/software", false));
  container.mount(mount(scripts_volume(draft), "/etc/flux-config", true));
  container.mount(mount("flux-curve", "/curve", true));
  container.mount(mount("shared-memory", "/dev/shm", true));
}

std::int64_t tasks_of(const Draft& draft, const FluxPolicy& policy) {
  return trainer_of(draft.job).numProcPerNode.value_or(policy.numProcPerNode.value_or(1));
}

// This also bounds accelerators, whose number is in the script, too.
void check_instance(const Draft& draft, std::size_t index, const FluxPolicy& policy,
                    kube::FieldErrors& errors) {
  check_processes(draft, index, {tasks_of(draft, policy), true}, errors);
  const Json* container = draft.container(index, kNode);
  const std::int64_t devices =
      container == nullptr ? 0 : count_accelerators(*container, draft.options.devices);
  if (devices > 0) check_processes(draft, index, {devices}, errors);
}

flux::Instance instance_of(const Draft& draft, std::size_t index, const FluxPolicy& policy) {
  const Json* found = draft.container(index, kNode);
  const Json& container = found == nullptr ? Json::null() : *found;
  const std::string prefix = fmt::format("{}-{}-0-", draft.name(), draft.pod_sets[index].name);
  flux::Instance instance;
  instance.nodes = process_count(draft.pod_sets[index].count);
  instance.hosts = fmt::format("{}[{}]", prefix, flux::index_range(instance.nodes));
  instance.lead = prefix + "0";
  instance.domain = fmt::format("{}.{}.svc.{}", draft.subdomain(), draft.job.metadata.ns,
                                draft.options.cluster_domain);
  instance.network_device = env_or(container, "FLUX_NETWORK_DEVICE", instance.network_device);
  instance.queue_policy = env_or(container, "FLUX_QUEUE_POLICY", instance.queue_policy);
  instance.tasks = process_count(tasks_of(draft, policy));
  const std::int64_t devices = count_accelerators(container, draft.options.devices);
  if (devices > 0) instance.accelerators = process_count(devices);
  return instance;
}

DependentObject dependent(const Draft& draft, const kube::Resource& resource, std::string name,
                          Json data) {
  DependentObject out;
  out.resource = resource;
  out.object = Json::object({{"apiVersion", resource.api_version()},
                             {"kind", resource.kind},
                             {"metadata", Json::object({{"name", std::move(name)},
                                                        {"namespace", draft.job.metadata.ns}})},
                             {"data", std::move(data)}});
  return out;
}

class Flux final : public Plugin {
 public:
  std::string_view source() const override { return "plugin flux"; }
  bool is_active(const Draft& draft) const override;
  void enforce_ml_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace

bool Flux::is_active(const Draft& draft) const {
  return policy_of(draft) != nullptr;
}

void Flux::enforce_ml_policy(Draft& draft) const {
  const auto index = find_nodes(draft);
  if (!index) return;
  auto container = draft.edit(*index, kNode, source());
  if (!container) return;
  wrap_command(draft, *container);
  draft.command_source = source();
  add_mounts(draft, *container);
  std::string image = env_or(container->json(), "FLUX_VIEW_IMAGE", kViewImage);
  add_volumes(draft, *index, source());
  add_installer(draft, *index, std::move(image), source());
}

void Flux::add_dependents(Draft& draft) const {
  const auto index = find_nodes(draft);
  if (!index) return;
  const flux::Instance instance = instance_of(draft, *index, *policy_of(draft));
  draft.dependents.push_back(
      dependent(draft, kube::kConfigMaps, entrypoint_name(draft),
                Json::object({{"entrypoint.sh", flux::entrypoint_script(instance)},
                              {"init.sh", flux::init_script(instance)}})));
  const std::string certificate = flux::curve_certificate(draft.name(), draft.job.metadata.uid);
  DependentObject keys =
      dependent(draft, kube::kSecrets, curve_name(draft),
                Json::object({{"curve.cert", kube::base64_encode(certificate)}}));
  keys.mode = DependentObject::Mode::kCreateOnce;
  keys.object.set("type", "Opaque");
  draft.dependents.push_back(std::move(keys));
}

void Flux::validate(const Draft& draft, kube::FieldErrors& errors) const {
  const auto index = find_nodes(draft);
  const Json* spec = index ? draft.pod_template(*index).find("spec") : nullptr;
  if (spec == nullptr) return;
  check_instance(draft, *index, *policy_of(draft), errors);
  for (const Json& container : spec->get_array("initContainers"))
    if (container.get_string("name") == kInstaller)
      errors.push_back(kube::invalid(
          "spec.runtimeRef", draft.job.spec.runtimeRef.name,
          fmt::format("InitContainer '{}' is reserved; rename it in job {} of the runtime",
                      kInstaller, draft.pod_sets[*index].name)));
}

std::unique_ptr<const Plugin> make_flux() {
  return std::make_unique<Flux>();
}

}  // namespace trainer::pipeline
