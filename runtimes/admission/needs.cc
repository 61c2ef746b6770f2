// The rules for a request read these objects, so the objects can be read before the rules run.
#include <set>
#include <string>

#include "api/api.hh"
#include "kube/model/meta.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/trainjob_rules.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/snapshot.hh"

namespace trainer {
namespace {

using kube::Json;

void need_of_trainjob(AdmissionNeeds& needs, const AdmissionRequest& request,
                      const Json* runtime_object, const pipeline::Plugins& plugins) {
  auto job = read_stored_trainjob(request.object);
  if (!job || !is_supported_runtime(job->spec.runtimeRef)) return;
  const std::string ns = job->metadata.ns.empty() ? request.ns : job->metadata.ns;
  const RuntimeRef& ref = job->spec.runtimeRef;
  if (ref.name.empty()) return;  // such a request would be one for the whole list
  const std::string kind = ref.kind.value_or("ClusterTrainingRuntime");
  needs.runtime = {kind, {kind == "TrainingRuntime" ? ns : std::string(), ref.name}};
  if (!runtime_object || request.operation != "CREATE") return;
  const auto runtime = read_runtime(*runtime_object);
  if (!runtime) return;
  needs.priority_classes = priority_classes_of(*runtime, plugins);
  std::set<std::string> seen;
  for (const MountedClaim& claim : mounted_claims(*job, *runtime)) {
    if (seen.insert(claim.name).second) needs.claims.push_back({ns, claim.name});
  }
}

// Claims are named after their template and the JobSet.
void need_of_jobset(AdmissionNeeds& needs, const AdmissionRequest& request) {
  if (request.operation != "CREATE") return;
  const auto jobset = read_jobset(request.object);
  if (!jobset || jobset->metadata.name.empty()) return;
  const std::string ns = jobset->metadata.ns.empty() ? request.ns : jobset->metadata.ns;
  for (const VolumeClaimPolicy& policy : jobset->spec.volumeClaimPolicies) {
    for (const Json& claim : policy.templates) {
      const std::string name = kube::ObjectMeta::of(claim).name;
      if (!name.empty()) needs.claims.push_back({ns, name + "-" + jobset->metadata.name});
    }
  }
}

}  // namespace

AdmissionNeeds needs_of(const AdmissionRequest& request, const pipeline::Plugins& plugins,
                        const Json* runtime) {
  AdmissionNeeds needs;
  if (request.operation == "DELETE") return needs;
  const std::string_view kind = request.object.get_string("kind");
  if (kind == kTrainJobs.kind) need_of_trainjob(needs, request, runtime, plugins);
  if (kind == kJobSets.kind) need_of_jobset(needs, request);
  return needs;
}

}  // namespace trainer
