// The types of Kubernetes that the schemas embed, from the data file kubernetes.json (made by
// tools/reduce_openapi.py).
#pragma once

#include <utility>

#include "kube/model/json.hh"

namespace trainer {

// {source, types, mergeKeys}, parsed again by every call: keep what is needed.
kube::Json read_kubernetes_types();

// The descriptions of the members of these types for `kubectl explain`, from the data file
// descriptions.json: {TYPE: {MEMBER: sentence}}. A member that has none in its own type has that of
// the type "*". Parsed again by every call: only definitions that are printed need them.
kube::Json read_kubernetes_descriptions();

// Resolves references, {"$ref": "#/NAME"}: NAME is a type of the table, and the members
// beside the reference are added to that type. Keeps the types in memory.
class KubernetesTypes {
 public:
  // The types of kubernetes.json.
  static const KubernetesTypes& instance();
  // Types by name.
  explicit KubernetesTypes(kube::Json types) : types_(std::move(types)) {}
  // The type that `schema` refers to, or nullptr.
  const kube::Json* target_of(const kube::Json& schema) const;
  // The schema with every reference replaced by its target, whose members get their descriptions.
  kube::Json expand(const kube::Json& schema, const kube::Json& descriptions = {}) const;

 private:
  KubernetesTypes();
  kube::Json types_;
};

}  // namespace trainer
