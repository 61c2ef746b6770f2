// TrainingRuntimes and ClusterTrainingRuntimes are admitted here (Kubeflow Trainer, pkg/webhooks).
#include <utility>

#include "api/api.hh"
#include "kube/model/meta.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/answers.hh"
#include "runtimes/admission/extensions.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/trainjob/legacy.hh"

namespace trainer {
namespace {

using kube::Json;

// Labels and finalizers can always be changed, also if the runtime was stored before a rule or a
// field existed.
bool leaves_spec(const AdmissionRequest& request) {
  return request.operation == "UPDATE" &&
         request.old_object.get("spec") == request.object.get("spec");
}

bool is_checked(const AdmissionRequest& request) {
  if (request.operation == "CREATE") return true;
  return request.operation == "UPDATE" && !leaves_spec(request) &&
         !kube::ObjectMeta::of(request.object).deletion_timestamp;
}

}  // namespace

AdmissionAnswer mutate_runtime(const AdmissionRequest& request) {
  if (request.operation != "CREATE" && request.operation != "UPDATE") return {};
  if (leaves_spec(request)) return {};
  Json object = request.object;
  Conversion conversion = convert_legacy_runtime(object);
  if (!conversion.errors.empty()) return forbid(conversion.errors);
  put_back_extensions(object, request, {"spec", "mlPolicy", "torch"},
                      {"numProcPerNode", "launcher"});
  put_back_extensions(object, request, {"spec"}, {"runPolicy"});
  return allow_with(request.object, object, std::move(conversion.warnings));
}

AdmissionAnswer validate_runtime(const AdmissionRequest& request, const PipelineOptions& options) {
  if (!is_checked(request)) return {};
  // If the mutating webhook did not run, an old field would be stored, and have no effect.
  Json object = request.object;
  if (Conversion conversion = convert_legacy_runtime(object); !conversion.errors.empty())
    return forbid(conversion.errors);
  const auto runtime = read_runtime(object);
  if (!runtime) return forbid(runtime.error());
  AdmissionAnswer answer = forbid(validate_runtime(*runtime));
  if (answer.is_allowed && request.operation == "CREATE")
    answer.warnings = warn_runtime(*runtime, options);
  return answer;
}

}  // namespace trainer
