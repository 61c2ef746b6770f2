#include "runtimes/admission/answers.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/patch.hh"

namespace trainer {

AdmissionAnswer forbid(std::string message) {
  AdmissionAnswer answer;
  answer.is_allowed = false;
  answer.code = 403;
  answer.reason = "Forbidden";
  answer.message = std::move(message);
  return answer;
}

AdmissionAnswer forbid(const kube::FieldErrors& errors) {
  return errors.empty() ? AdmissionAnswer{} : forbid(kube::to_string(errors));
}

AdmissionAnswer refuse_jobset(const std::string& name, const kube::FieldErrors& errors) {
  AdmissionAnswer answer;
  if (errors.empty()) return answer;
  answer.is_allowed = false;
  answer.code = 422;
  answer.reason = "Invalid";
  answer.message =
      fmt::format("JobSet.jobset.x-k8s.io \"{}\" is invalid: {}", name, kube::to_string(errors));
  return answer;
}

AdmissionAnswer allow_with(const kube::Json& before, const kube::Json& after,
                           std::vector<std::string> warnings) {
  AdmissionAnswer answer;
  answer.warnings = std::move(warnings);
  kube::Json patch = kube::json_patch_diff(before, after);
  if (!patch.empty()) answer.json_patch = std::move(patch);
  return answer;
}

}  // namespace trainer
