#include "runtimes/admission/mpijob.hh"

#include <algorithm>
#include <array>
#include <string>

#include "api/v1job.hh"
#include "runtimes/admission/answers.hh"
#include "runtimes/mpijob/plan.hh"
#include "runtimes/views/created_version.hh"

namespace trainer {
namespace {

// The CRD's defaults write these at v2beta1, so that every job of that version has them.
constexpr std::array<std::string_view, 4> kOfV2{"runLauncherAsWorker", "sshAuthMountPath",
                                                "launcherCreationPolicy", "mpiImplementation"};

}  // namespace

AdmissionAnswer stamp_mpijob(const AdmissionRequest& request) {
  if (request.operation != "CREATE" || !request.object.is_object()) return {};
  const kube::Json& annotations = request.object.get("metadata").get("annotations");
  if (annotations.find(kCreatedVersionKey)) return {};
  const kube::Json& spec = request.object.get("spec");
  const auto found = std::ranges::find_if(
      kOfV2, [&spec](std::string_view member) { return spec.find(member) != nullptr; });
  std::vector<std::string> warnings;
  if (found != kOfV2.end())
    warnings.push_back("spec." + std::string(*found) +
                       ": a member of kubeflow.org/v2beta1, so that the job is reconciled as one "
                       "of that version: apply it with that apiVersion");
  kube::Json stamped = request.object;
  stamped["metadata"]["annotations"].set(kCreatedVersionKey,
                                         found == kOfV2.end() ? "v1" : "v2beta1");
  return allow_with(request.object, stamped, std::move(warnings));
}

AdmissionAnswer review_mpijob(const AdmissionRequest& request,
                              const mpijob::MPISettings& settings) {
  AdmissionAnswer answer;
  if (request.operation != "CREATE") return answer;
  // The schema refuses what cannot be read.
  if (const auto job = v1::read_job(request.object, mpijob::kReplicaSpecs))
    answer.warnings = mpijob::warnings_of(*job, settings);
  return answer;
}

}  // namespace trainer
