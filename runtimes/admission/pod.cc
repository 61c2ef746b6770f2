// Pods are admitted here: exclusive placement. The rules are in runtimes/jobset/exclusive.
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/answers.hh"

namespace trainer {

AdmissionAnswer mutate_pod(const AdmissionRequest& request,
                           const jobset::PlacementLookups& lookups) {
  if (request.operation != "CREATE") return {};
  const auto placed = jobset::place_pod(request.object, lookups);
  if (placed) return allow_with(request.object, *placed, {});
  AdmissionAnswer answer = forbid(placed.error().message);
  if (placed.error().code == kube::ErrorCode::kNotFound) {
    answer.code = 404;
    answer.reason = "NotFound";
  }
  return answer;
}

AdmissionAnswer validate_pod(const AdmissionRequest& request,
                             const jobset::PlacementLookups& lookups) {
  if (request.operation != "CREATE") return {};
  auto why = jobset::deny_pod(request.object, lookups);
  return why ? forbid(std::move(*why)) : AdmissionAnswer();
}

}  // namespace trainer
