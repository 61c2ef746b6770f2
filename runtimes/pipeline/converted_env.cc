#include "runtimes/pipeline/converted_env.hh"

#include "kube/model/pod_template.hh"

namespace trainer::pipeline {

namespace {

using kube::Json;

bool is_absent(const Json* value) {
  return value == nullptr || value->is_null();
}

Json converted_source(const Json& source) {
  Json out = source;
  if (Json* field = out.find("fieldRef"); field && field->is_object()) field->erase("apiVersion");
  if (Json* resource = out.find("resourceFieldRef"); resource && resource->is_object()) {
    if (is_absent(resource->find("containerName"))) resource->set("containerName", "");
    if (is_absent(resource->find("divisor"))) resource->set("divisor", "0");
    kube::canonicalise_quantities(*resource);
  }
  return out;
}

}  // namespace

kube::Json converted_env(const kube::Json& variable) {
  // It is read although the schema refuses it; the API server refuses the pod.
  if (!variable.is_object()) return variable;
  Json out = variable;
  const Json* source = variable.find("valueFrom");
  if (!is_absent(source)) {
    out.erase("value");
    out.set("valueFrom", converted_source(*source));
    return out;
  }
  out.erase("valueFrom");
  if (is_absent(variable.find("value"))) out.set("value", "");
  return out;
}

}  // namespace trainer::pipeline
