#include "runtimes/admission/trainjob_rules.hh"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "api/api.hh"
#include "kube/model/meta.hh"
#include "kube/model/name_index.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/warnings.hh"
#include "runtimes/trainjob/children.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr std::string_view kPatches = "spec.runtimePatches";

// Returns the settings of patches for pods, by the patch's manager and the job, without settings
// that a Job also applies later, and without jobs that then have no settings left.
std::map<std::pair<std::string, std::string>, Json> fixed_parts(const TrainJob& trainjob) {
  std::map<std::pair<std::string, std::string>, Json> parts;
  for (const RuntimePatch& patch : trainjob.spec.runtimePatches) {
    if (!patch.trainingRuntimeSpec) continue;
    const Json& jobset = patch.trainingRuntimeSpec->get_path({"template", "spec"});
    for (const Json& job : jobset.get_array("replicatedJobs")) {
      Json spec = job.get_path({"template", "spec", "template", "spec"});
      if (!spec.is_object()) continue;
      for (const char* member : {"nodeSelector", "tolerations", "schedulingGates", "affinity"})
        spec.erase(member);
      if (!spec.empty())
        parts[{patch.manager, std::string(job.get_string("name"))}] = std::move(spec);
    }
  }
  return parts;
}

const Json& pod_spec_of(const Json& job_template) {
  return job_template.get_path({"spec", "template", "spec"});
}

void add_claims(std::vector<MountedClaim>& claims, std::string_view replicated_job,
                const Json& pod_spec) {
  for (const Json& volume : pod_spec.get_array("volumes")) {
    const std::string_view claim = volume.get("persistentVolumeClaim").get_string("claimName");
    if (!claim.empty()) claims.push_back({std::string(claim), std::string(replicated_job)});
  }
}

std::int32_t nodes_of(const TrainJob& job, const Runtime& runtime) {
  if (const auto& own = pipeline::trainer_of(job).numNodes) return *own;
  return runtime.spec.mlPolicy ? runtime.spec.mlPolicy->numNodes.value_or(1) : 1;
}

bool is_trainer(const ReplicatedJob& job) {
  return job.name == pipeline::kNode || ancestor_of(job) == pipeline::kTrainerStep;
}

void warn_about_claims(std::vector<std::string>& warnings, const TrainJob& job,
                       const Runtime& runtime, const AdmissionLookups& lookups) {
  const std::int32_t nodes = nodes_of(job, runtime);
  if (nodes < 2 || !lookups.claim) return;
  std::set<std::string> warned;
  const auto& jobs = replicated_jobs_of(runtime);
  const kube::NameIndex by_name(
      jobs, [](const ReplicatedJob& replicated) { return std::string_view(replicated.name); });
  for (const MountedClaim& mounted : mounted_claims(job, runtime)) {
    const auto at = by_name.find(mounted.replicated_job);
    if (!at || !is_trainer(jobs[*at]) || !warned.insert(mounted.name).second) continue;
    const auto claim = lookups.claim(job.metadata.ns, mounted.name);
    if (!claim || !pipeline::is_for_one_node(*claim)) continue;
    warnings.push_back(
        fmt::format("PersistentVolumeClaim \"{}\" can be mounted on one machine only, and this job "
                    "has {} nodes: use a claim with access mode ReadWriteMany or ReadOnlyMany",
                    mounted.name, nodes));
  }
}

void warn_about_equal_names(std::vector<std::string>& warnings, const TrainJob& job,
                            const AdmissionLookups& lookups) {
  const RuntimeRef& ref = job.spec.runtimeRef;
  if (ref.kind.value_or("ClusterTrainingRuntime") != "ClusterTrainingRuntime" || !lookups.runtime)
    return;
  if (!lookups.runtime("TrainingRuntime", job.metadata.ns, ref.name)) return;
  warnings.push_back(fmt::format(
      "TrainingRuntime \"{}\" in this namespace has the name of the ClusterTrainingRuntime that "
      "the job refers to: the Python SDK shows the number of nodes and the status by the former",
      ref.name));
}

}  // namespace

kube::FieldErrors check_parts_may_change(const TrainJob& before, const TrainJob& after) {
  kube::FieldErrors errors;
  if (!before.status.startTime) return errors;
  const auto check = [&errors](std::string_view part, bool was_there, bool is_there) {
    if (was_there == is_there) return;
    errors.push_back(kube::forbidden(kube::join_field("spec", part),
                                     "once the job has run it can be neither added nor removed: "
                                     "create the TrainJob again"));
  };
  // Rules of the schema say what an elastic job may add.
  if (!before.status.elastic)
    check("trainer", before.spec.trainer.has_value(), after.spec.trainer.has_value());
  check("initializer", before.spec.initializer.has_value(), after.spec.initializer.has_value());
  return errors;
}

kube::FieldErrors check_patches_may_change(const TrainJob& before, const TrainJob& after,
                                           const AdmissionLookups& lookups) {
  if (!before.is_suspended() && !after.is_suspended()) {
    return {kube::forbidden(std::string(kPatches),
                            "RuntimePatches can only be modified when the TrainJob is suspended "
                            "before or after the update")};
  }
  kube::FieldErrors errors;
  const auto object =
      lookups.jobset ? lookups.jobset(after.metadata.ns, after.metadata.name) : nullptr;
  if (!object) return errors;
  const auto jobset = read_jobset(*object);
  if (!jobset || !is_owned_by(jobset->metadata, after)) return errors;
  for (const ReplicatedJobStatus& job : jobset->status.replicatedJobsStatus) {
    if (job.active <= 0) continue;
    errors.push_back(kube::forbidden(
        std::string(kPatches),
        fmt::format(
            "RuntimePatches cannot be modified when the JobSet's ReplicatedJob {} is still active",
            job.name)));
  }
  // The schema refuses changes within a patch, but neither a new patch nor the removal of one.
  if (before.status.startTime && fixed_parts(before) != fixed_parts(after))
    errors.push_back(kube::forbidden(
        std::string(kPatches),
        "once the job has run, its pods stay as they are, but for labels, annotations, "
        "nodeSelector, tolerations and schedulingGates: create the TrainJob again"));
  return errors;
}

std::vector<std::string> priority_classes_of(const Runtime& runtime,
                                             const pipeline::Plugins& plugins) {
  std::vector<std::string> names;
  for (const auto& plugin : plugins)
    for (std::string& name : plugin->priority_classes(runtime)) names.push_back(std::move(name));
  return names;
}

kube::FieldErrors check_priority_classes(const Runtime& runtime, const pipeline::Plugins& plugins,
                                         const AdmissionLookups& lookups) {
  kube::FieldErrors errors;
  if (!lookups.priority_class_exists) return errors;
  for (const std::string& name : priority_classes_of(runtime, plugins)) {
    if (lookups.priority_class_exists(name)) continue;
    errors.push_back(kube::invalid("spec.templateSpec.priorityClassName", name,
                                   "PriorityClass \"{}\" doesn't exist: "
                                   "priorityclasses.scheduling.k8s.io \"{}\" not found",
                                   name, name));
  }
  return errors;
}

std::vector<MountedClaim> mounted_claims(const TrainJob& job, const Runtime& runtime) {
  std::vector<MountedClaim> claims;
  for (const ReplicatedJob& replicated : replicated_jobs_of(runtime)) {
    add_claims(claims, replicated.name, pod_spec_of(replicated.template_));
  }
  for (const RuntimePatch& patch : job.spec.runtimePatches) {
    if (!patch.trainingRuntimeSpec) continue;
    const Json& spec = patch.trainingRuntimeSpec->get_path({"template", "spec"});
    for (const Json& replicated : spec.get_array("replicatedJobs"))
      add_claims(claims, replicated.get_string("name"), pod_spec_of(replicated.get("template")));
  }
  return claims;
}

void warn_about_other_objects(const TrainJob& job, const Runtime& runtime,
                              const AdmissionLookups& lookups, std::vector<std::string>& warnings) {
  warn_about_claims(warnings, job, runtime, lookups);
  warn_about_equal_names(warnings, job, lookups);
}

}  // namespace trainer
