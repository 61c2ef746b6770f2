// Admission allows and refuses with these answers (Kubeflow Trainer and JobSet, pkg/webhooks).
// Pure.
#pragma once

#include <string>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// Answers 403 Forbidden with the errors as one text, like Trainer's webhooks; allowed if there are
// none.
AdmissionAnswer forbid(const kube::FieldErrors& errors);
AdmissionAnswer forbid(std::string message);
// Answers 422 Invalid, like JobSet's webhooks: `JobSet.jobset.x-k8s.io "NAME" is invalid: ...`.
AdmissionAnswer refuse_jobset(const std::string& name, const kube::FieldErrors& errors);
// Allows, with the JSON Patch that turns `before` into `after`; without one if they are equal.
AdmissionAnswer allow_with(const kube::Json& before, const kube::Json& after,
                           std::vector<std::string> warnings);

}  // namespace trainer
