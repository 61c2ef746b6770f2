// How admission allows and refuses (Kubeflow Trainer and JobSet, pkg/webhooks). Pure.
#pragma once

#include <string>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// 403 Forbidden with the errors as one text, as Trainer's webhooks answer; allowed where there are
// none.
AdmissionAnswer forbid(const kube::FieldErrors& errors);
AdmissionAnswer forbid(std::string message);
// 422 Invalid, as JobSet's webhooks answer: `JobSet.jobset.x-k8s.io "NAME" is invalid: ...`.
AdmissionAnswer refuse_jobset(const std::string& name, const kube::FieldErrors& errors);
// Allowed, with the JSON Patch that turns `before` into `after`; without one where they are equal.
AdmissionAnswer allow_with(const kube::Json& before, const kube::Json& after,
                           std::vector<std::string> warnings);

}  // namespace trainer
