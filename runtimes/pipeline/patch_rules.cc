
#include <string>
#include <string_view>

#include "kube/model/name_index.hh"
#include "kube/model/names.hh"
#include "runtimes/pipeline/patches.hh"
#include "runtimes/views/text.hh"

namespace trainer::pipeline {

namespace {

// Joins names as "a, b". Only the first of many names are listed, since each unknown one is
// answered with all known ones.
template <class Items, class NameOf>
std::string list_names(const Items& items, const NameOf& name_of) {
  constexpr std::size_t kEnough = 2'000;
  std::string names;
  for (const auto& item : items) {
    if (names.size() > kEnough) return keep_head(names, kEnough) + "...";
    if (!names.empty()) names += ", ";
    names += name_of(item);
  }
  return names.empty() ? "none" : names;
}

std::string names_in(const kube::Json& list_owner, std::string_view list) {
  return list_names(list_owner.get_array(list),
                    [](const kube::Json& item) { return item.get_string("name"); });
}

// No one reads more of these errors, and each holds a list of names.
constexpr std::size_t kEnoughErrors = 200;

// The trainer and the initializers take their env from fields of their own.
std::string_view env_field_of(std::string_view container) {
  if (container == kNode) return "spec.trainer.env";
  if (container == kDatasetStep) return "spec.initializer.dataset.env";
  if (container == kModelStep) return "spec.initializer.model.env";
  return {};
}

struct PatchRules {
  const Runtime& runtime;
  const std::vector<ReplicatedJob>& jobs = replicated_jobs_of(runtime);
  kube::NameIndex by_name{jobs,
                          [](const ReplicatedJob& job) { return std::string_view(job.name); }};
  kube::FieldErrors errors = {};

  const ReplicatedJob* find_job(std::string_view name) const {
    const auto found = by_name.find(name);
    return found ? &jobs[*found] : nullptr;
  }

  void check_containers(const kube::Json& patched_pod, const kube::Json& pod, std::string_view list,
                        const std::string& job, const std::string& path) {
    const bool is_init = list == "initContainers";
    const auto& items = patched_pod.get_array(list);
    if (items.empty()) return;
    const kube::NameIndex known(pod.get_array(list));
    for (std::size_t i = 0; i < items.size() && errors.size() < kEnoughErrors; ++i) {
      const std::string at = kube::join_index(kube::join_field(path, list), i);
      const std::string_view name = items[i].get_string("name");
      if (!known.contains(name))
        errors.push_back(
            kube::invalid(at + ".name", name,
                          "must not have {} that doesn't exist in the runtime job {}; its {}: {}",
                          is_init ? "initContainer" : "container", job, list, names_in(pod, list)));
      if (!is_init && !env_field_of(name).empty() && !items[i].get_array("env").empty())
        errors.push_back(kube::invalid(at + ".env", items[i].get_array("env"),
                                       "must not have envs for the dataset-initializer, "
                                       "model-initializer, node containers; set {} instead",
                                       env_field_of(name)));
    }
  }

  void check_job(const kube::Json& patched_job, const std::string& path) {
    if (errors.size() >= kEnoughErrors) return;
    const std::string name(patched_job.get_string("name"));
    const ReplicatedJob* job = find_job(name);
    if (job == nullptr) {
      errors.push_back(kube::invalid(path + ".name", name,
                                     "must not have replicated job that doesn't exist in the "
                                     "runtime job template; jobs of {} \"{}\": {}",
                                     runtime.kind, runtime.metadata.name,
                                     list_names(jobs, [](const ReplicatedJob& known) {
                                       return std::string_view(known.name);
                                     })));
      return;
    }
    const kube::Json* patched_pod = patched_job.find_path({"template", "spec", "template", "spec"});
    if (patched_pod == nullptr) return;
    const kube::Json& pod = job->template_.get_path({"spec", "template", "spec"});
    const std::string pod_path = path + ".template.spec.template.spec";
    check_containers(*patched_pod, pod, "initContainers", name, pod_path);
    check_containers(*patched_pod, pod, "containers", name, pod_path);
  }
};

}  // namespace

kube::FieldErrors check_patches(const TrainJob& job, const Runtime& runtime) {
  if (job.spec.runtimePatches.empty()) return {};
  PatchRules rules{runtime};
  for (std::size_t i = 0; i < job.spec.runtimePatches.size(); ++i) {
    const RuntimePatch& patch = job.spec.runtimePatches[i];
    const std::string path = kube::join_index("spec.runtimePatches", i);
    if (const std::string problem = kube::check_domain_prefixed_path(patch.manager);
        !problem.empty())
      rules.errors.push_back(kube::invalid(path + ".manager", patch.manager, problem));
    if (!patch.trainingRuntimeSpec) continue;
    const auto& jobs =
        patch.trainingRuntimeSpec->get_path({"template", "spec"}).get_array("replicatedJobs");
    for (std::size_t k = 0; k < jobs.size(); ++k)
      rules.check_job(
          jobs[k], kube::join_index(path + ".trainingRuntimeSpec.template.spec.replicatedJobs", k));
  }
  return rules.errors;
}

}  // namespace trainer::pipeline
