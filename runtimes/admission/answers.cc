#include "runtimes/admission/answers.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/patch.hh"

namespace trainer {

AdmissionAnswer forbid(std::string message) {
  return {.is_allowed = false, .code = 403, .reason = "Forbidden", .message = std::move(message)};
}

AdmissionAnswer forbid(const kube::FieldErrors& errors) {
  return errors.empty() ? AdmissionAnswer{} : forbid(kube::to_string(errors));
}

AdmissionAnswer refuse_jobset(const std::string& name, const kube::FieldErrors& errors) {
  if (errors.empty()) return {};
  return {.is_allowed = false,
          .code = 422,
          .reason = "Invalid",
          .message = fmt::format("JobSet.jobset.x-k8s.io \"{}\" is invalid: {}", name,
                                 kube::to_string(errors))};
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
