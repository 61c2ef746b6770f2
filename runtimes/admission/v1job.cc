#include "runtimes/admission/v1job.hh"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "runtimes/admission/answers.hh"
#include "runtimes/v1/validate.hh"

namespace trainer {

AdmissionAnswer validate_v1job(const AdmissionRequest& request, const v1::Framework& framework,
                               const v1::Settings& settings) {
  if (request.operation != "CREATE" && request.operation != "UPDATE") return {};
  const auto job = v1::read_job(request.object, framework.replica_specs);
  if (!job) return forbid(job.error());
  if (job->metadata.deletion_timestamp) return {};
  v1::Verdict verdict = v1::validate_create(framework, *job, settings);
  if (request.operation == "UPDATE") {
    const auto before = v1::read_job(request.old_object, framework.replica_specs);
    if (before) verdict = v1::validate_update(framework, *before, *job, settings);
  }
  // The schema asks for roles only where there is a spec. An empty map of roles is admitted.
  if (framework.has_webhook && !request.object.get("spec").find(framework.replica_specs)) {
    verdict.errors.push_back(
        kube::required(fmt::format("spec.{}", framework.replica_specs), "must be required"));
  }
  AdmissionAnswer answer = forbid(verdict.errors);
  answer.warnings = std::move(verdict.warnings);
  if (answer.is_allowed && request.operation == "CREATE")
    for (std::string& warning : v1::warnings_of(framework, *job, settings))
      answer.warnings.push_back(std::move(warning));
  return answer;
}

}  // namespace trainer
