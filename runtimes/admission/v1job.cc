#include "runtimes/admission/v1job.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/pod_checks.hh"
#include "runtimes/admission/answers.hh"
#include "runtimes/v1/validate.hh"

namespace trainer {
namespace {

// Upstream accepts such jobs; none of their pods is ever created.
void warn_about_pods(const v1::Framework& framework, const v1::Job& job, AdmissionAnswer& answer) {
  kube::FieldErrors errors;
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    kube::check_pod_template(spec.template_, v1::role_path(framework, role) + ".template", errors);
  if (!errors.empty())
    answer.warnings.push_back(
        fmt::format("the API server will refuse pods of this job: {}", kube::to_string(errors)));
}

}  // namespace

AdmissionAnswer validate_v1job(const AdmissionRequest& request, const v1::Framework& framework) {
  if (request.operation != "CREATE" && request.operation != "UPDATE") return {};
  const auto job = v1::read_job(request.object, framework.replica_specs);
  if (!job) return forbid(job.error());
  if (job->metadata.deletion_timestamp) return {};
  v1::Verdict verdict = v1::validate_create(framework, *job);
  if (request.operation == "UPDATE") {
    const auto before = v1::read_job(request.old_object, framework.replica_specs);
    if (before) verdict = v1::validate_update(framework, *before, *job);
  }
  AdmissionAnswer answer = forbid(verdict.errors);
  answer.warnings = std::move(verdict.warnings);
  if (answer.is_allowed && request.operation == "CREATE") warn_about_pods(framework, *job, answer);
  return answer;
}

}  // namespace trainer
