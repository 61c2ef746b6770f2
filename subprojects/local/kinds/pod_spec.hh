// Defaults and checks of pods and pod templates are kube-apiserver's (pkg/apis/core/v1 and
// pkg/apis/core/validation). Pure.
#pragma once

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer::local {

// Sets defaults of the spec of a Pod or a pod template.
void set_pod_spec_defaults(kube::Json& spec);
// Sets defaults that only Pods get, also those of admission plugins that are on by default
// (tolerations, priority, service account), and the status of a new Pod.
void set_pod_defaults(kube::Json& pod);

// `before` is the stored pod of an update, else nullptr.
kube::FieldErrors check_pod(const kube::Json& pod, const kube::Json* before);

}  // namespace trainer::local
