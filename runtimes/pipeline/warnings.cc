#include "runtimes/pipeline/warnings.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/api.hh"
#include "kube/model/pod_checks.hh"
#include "runtimes/pipeline/patches.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/unused.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

constexpr std::size_t kKueuePodSets = 18;  // a Workload of Kueue 0.19 holds no more

const kube::Json& pod_spec_of(const Draft& draft, std::size_t index) {
  return draft.pod_template(index).get("spec");
}

// Returns the claims that only one machine can mount.
std::set<std::string, std::less<>> claims_for_one_node(const Draft& draft) {
  std::set<std::string, std::less<>> names;
  for (const VolumeClaimPolicy& policy : draft.spec.volumeClaimPolicies)
    for (const kube::Json& claim : policy.templates)
      if (const kube::Json* metadata = claim.find("metadata"); metadata && is_for_one_node(claim))
        names.emplace(metadata->get_string("name"));
  return names;
}

void warn_about_claims(const Draft& draft, std::size_t index,
                       const std::set<std::string, std::less<>>& claims,
                       std::vector<std::string>& out) {
  const std::int32_t pods = expected_pods(draft, index);
  if (pods < 2) return;
  for (const kube::Json& container : pod_spec_of(draft, index).get_array("containers"))
    for (const kube::Json& mount : container.get_array("volumeMounts"))
      if (claims.contains(mount.get_string("name")))
        out.push_back(fmt::format(
            "spec.trainer.numNodes: {} pods of job {} share claim {}, which is ReadWriteOnce: pods "
            "on other machines will not start; use a runtime with a ReadWriteMany claim",
            pods, draft.pod_sets[index].name, mount.get_string("name")));
}

void warn_about_host_network(const Draft& draft, std::size_t index, std::vector<std::string>& out) {
  const kube::Json& spec = pod_spec_of(draft, index);
  if (!spec.get_bool("hostNetwork") || spec.get_string("dnsPolicy") == "ClusterFirstWithHostNet")
    return;
  out.push_back(
      fmt::format("spec.runtimeRef: job {} of runtime \"{}\" uses hostNetwork without dnsPolicy "
                  "ClusterFirstWithHostNet, so its pods cannot resolve each other's names",
                  draft.pod_sets[index].name, draft.runtime.metadata.name));
}

// Warns about the job's settings for its trainer that have no effect.
void warn_about_trainer(const Draft& draft, std::vector<std::string>& out) {
  const Trainer& trainer = trainer_of(draft.job);
  const MlPolicy* policy = draft.ml_policy();
  const bool has_nodes = policy != nullptr && policy->mpi && draft.find_job(kNode);
  if (!draft.find_ancestor(kTrainerStep) && !has_nodes && !draft.unlabelled_launcher &&
      !write(draft.job.spec).get("trainer").empty())
    out.push_back(fmt::format(
        "spec.trainer: has no effect, because no job of runtime \"{}\" has the label "
        "{}: {}; add it to the template of the job that trains, whose container is called {}",
        draft.runtime.metadata.name, kAncestorLabel, kTrainerStep, kNode));
  if (trainer.numNodes == std::optional<std::int32_t>(0))
    out.push_back(
        "spec.trainer.numNodes: with 0 nodes the job completes at once, and nothing has trained; "
        "write 1 or more");
  // Flux takes apart a command of one string itself.
  if (!trainer.command || trainer.command->empty() || (policy != nullptr && policy->flux)) return;
  if (const auto problem = kube::several_words_in_one(trainer.command->front()))
    out.push_back("spec.trainer.command[0]: " + *problem);
}

std::set<std::string_view> mounted_volumes(const kube::Json& pod_spec) {
  std::set<std::string_view> names;
  for (const char* list : {"containers", "initContainers"})
    for (const kube::Json& container : pod_spec.get_array(list))
      for (const char* kind : {"volumeMounts", "volumeDevices"})
        for (const kube::Json& mount : container.get_array(kind))
          names.insert(mount.get_string("name"));
  return names;
}

// Returns the first volume that a patch adds to a job and no container mounts. The sidecars that
// are injected later mount their own volumes.
const kube::Json* find_unmounted(const kube::Json::Array& volumes,
                                 const std::set<std::string_view>& mounted) {
  const auto at = std::ranges::find_if(volumes, [&mounted](const kube::Json& volume) {
    const std::string_view name = volume.get_string("name");
    return !mounted.contains(name) && !name.starts_with("gke-gcsfuse-") &&
           volume.find("$patch") == nullptr;
  });
  return at == volumes.end() ? nullptr : &*at;
}

// Warns about parts of patches that nothing uses: volumes without a mount, and a queue that only
// the JobSet has.
void warn_about_patches(const Draft& draft, std::vector<std::string>& out) {
  // Each job is searched once, whatever number of patches names it.
  std::map<std::string_view, std::size_t> jobs;
  for (std::size_t n = 0; n < draft.pod_sets.size(); ++n) jobs.emplace(draft.pod_sets[n].name, n);
  std::map<std::size_t, std::set<std::string_view>> mounted;
  for (std::size_t i = 0; i < draft.job.spec.runtimePatches.size(); ++i) {
    const auto& patch = draft.job.spec.runtimePatches[i].trainingRuntimeSpec;
    if (!patch) continue;
    const std::string path = kube::join_index("spec.runtimePatches", i);
    if (patch->get_path({"template", "metadata", "labels"}).find(kQueueLabel) != nullptr &&
        !draft.job.metadata.labels.contains(kQueueLabel))
      out.push_back(
          fmt::format("{}: label {} on the JobSet does not put the TrainJob into a queue; write it "
                      "into the TrainJob's metadata.labels",
                      path, kQueueLabel));
    for (const kube::Json& job :
         patch->get_path({"template", "spec"}).get_array("replicatedJobs")) {
      const auto& volumes =
          job.get_path({"template", "spec", "template", "spec"}).get_array("volumes");
      const auto at = jobs.find(job.get_string("name"));
      if (volumes.empty() || at == jobs.end()) continue;
      auto [names, is_new] = mounted.try_emplace(at->second);
      if (is_new) names->second = mounted_volumes(pod_spec_of(draft, at->second));
      if (const kube::Json* volume = find_unmounted(volumes, names->second))
        out.push_back(fmt::format(
            "{}: no container of job {} mounts volume {}; add it to volumeMounts of a container "
            "in the patch",
            path, at->first, volume->get_string("name")));
    }
  }
}

// The job's env is converted by upstream's rules, which drop a value beside a source.
void warn_about_values(const std::vector<kube::Json>& env, std::string_view path,
                       std::vector<std::string>& out) {
  for (std::size_t i = 0; i < env.size(); ++i)
    if (env[i].get("valueFrom").is_object() && !env[i].get_string("value").empty())
      out.push_back(fmt::format("{}.value: has no effect beside valueFrom: leave one of them out",
                                kube::join_index(path, i)));
}

void warn_about_env(const Draft& draft, std::vector<std::string>& out) {
  warn_about_values(trainer_of(draft.job).env, "spec.trainer.env", out);
  const auto& initializer = draft.job.spec.initializer;
  if (initializer && initializer->dataset)
    warn_about_values(initializer->dataset->env, "spec.initializer.dataset.env", out);
  if (initializer && initializer->model)
    warn_about_values(initializer->model->env, "spec.initializer.model.env", out);
}

void warn_about_resources(const Draft& draft, std::vector<std::string>& out) {
  if (trainer_of(draft.job).resourcesPerNode && draft.ml_policy() == nullptr)
    out.push_back(
        fmt::format("spec.trainer.resourcesPerNode: has no effect, because runtime \"{}\" has no "
                    "mlPolicy; an empty one (mlPolicy: {{}}) is enough",
                    draft.runtime.metadata.name));
  if (!is_readable_by_sdk(draft.trainer_container()))
    out.push_back(fmt::format(
        "spec.trainer.resourcesPerNode.limits: the Python SDK cannot read jobs whose limits name "
        "neither cpu nor a device it knows ({}); add a cpu limit",
        names_read_by_sdk()));
}

}  // namespace

void warn_about_one_process(const Draft& draft, std::vector<std::string>& warnings) {
  if (trainer_of(draft.job).numProcPerNode.value_or(1) > 1 && draft.find_ancestor(kTrainerStep))
    warnings.push_back(
        fmt::format("spec.trainer.numProcPerNode: has no effect, because runtime \"{}\" starts one "
                    "process a node; leave it out, or start the processes in the command",
                    draft.runtime.metadata.name));
}

bool is_readable_by_sdk(const kube::Json& container) {
  const kube::Json* limits = container.find_path({"resources", "limits"});
  if (limits == nullptr || !limits->is_object() || limits->empty()) return true;
  return std::any_of(
      limits->as_object().begin(), limits->as_object().end(),
      [](const auto& member) { return member.first == "cpu" || is_read_by_sdk(member.first); });
}

bool is_for_one_node(const kube::Json& claim) {
  const auto& modes = claim.get("spec").get_array("accessModes");
  return !modes.empty() && std::all_of(modes.begin(), modes.end(), [](const kube::Json& mode) {
    return mode == kube::Json("ReadWriteOnce") || mode == kube::Json("ReadWriteOncePod");
  });
}

bool is_deprecated(const Runtime& runtime) {
  const auto label = runtime.metadata.labels.find(kSupportLabel);
  return runtime.kind == kClusterTrainingRuntimes.kind && label != runtime.metadata.labels.end() &&
         label->second == "deprecated";
}

std::string deprecation_notice() {
  return "is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime "
         "deprecation policy: "
         "https://trainer.kubeflow.org/en/latest/operator-guides/"
         "runtime.html#runtime-deprecation-policy";
}

std::vector<std::string> warnings_of(const Draft& draft) {
  std::vector<std::string> out;
  const std::string& runtime = draft.runtime.metadata.name;
  if (is_deprecated(draft.runtime))
    out.push_back(
        fmt::format("Referenced ClusterTrainingRuntime \"{}\" {}", runtime, deprecation_notice()));
  for (const kube::FieldError& error : check_names(draft)) out.push_back(error.to_string());
  if (draft.pod_sets.size() > kKueuePodSets)
    out.push_back(
        fmt::format("spec.runtimeRef: runtime \"{}\" has {} jobs, and Kueue admits {} at most",
                    runtime, draft.pod_sets.size(), kKueuePodSets));
  warn_about_trainer(draft, out);
  warn_about_env(draft, out);
  warn_about_resources(draft, out);
  const auto claims = claims_for_one_node(draft);
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    warn_about_host_network(draft, i, out);
    warn_about_claims(draft, i, claims, out);
  }
  warn_about_patches(draft, out);
  for (std::string& conflict : find_patch_conflicts(draft.job)) out.push_back(std::move(conflict));
  warn_about_unused(draft.job, out);
  for (const auto& plugin : *draft.options.plugins)
    if (plugin->is_active(draft))
      plugin->warn(draft, out);
    else
      plugin->warn_inactive(draft, out);
  return out;
}

}  // namespace trainer::pipeline
