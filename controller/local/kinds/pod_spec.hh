// Defaults and checks of pods and pod templates, as kube-apiserver has them (pkg/apis/core/v1 and
// pkg/apis/core/validation). Pure.
#pragma once

#include <string_view>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer::local {

// What both a Pod's and a template's spec get.
void set_pod_spec_defaults(kube::Json& spec);
// What only Pods get: also by the admission plugins that a cluster has switched on (tolerations,
// priority, service account), and the status of a new one.
void set_pod_defaults(kube::Json& pod);

// What is wrong with a pod's spec, beyond its types: names, references and words.
void check_pod_spec(const kube::Json& spec, std::string_view path, kube::FieldErrors& errors);
kube::FieldErrors check_pod(const kube::Json& pod, const kube::Json* before);

}  // namespace trainer::local
