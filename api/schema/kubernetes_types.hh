// The schemas embed these types of Kubernetes, from the data file kubernetes.json, which
// tools/reduce_openapi.py makes.
#pragma once

#include <utility>

#include "kube/model/json.hh"

namespace trainer {

// Returns {source, types, mergeKeys}, parsed again by every call: keep the parts that you need.
kube::Json read_kubernetes_types();

// Returns the descriptions of the members of these types for `kubectl explain`, from the data file
// descriptions.json: {TYPE: {MEMBER: sentence}}. A member that has none in its own type has that of
// the type "*". The file is parsed again by every call, since only printed definitions need them.
kube::Json read_kubernetes_descriptions();

// Resolves references, {"$ref": "#/NAME"}: NAME is a type of the table, and the members
// beside the reference are added to that type. Keeps the types in memory.
class KubernetesTypes {
 public:
  // Returns the types of kubernetes.json.
  static const KubernetesTypes& instance();
  // `types` has them by name.
  explicit KubernetesTypes(kube::Json types) : types_(std::move(types)) {}
  // Returns the type that `schema` refers to, or nullptr.
  const kube::Json* target_of(const kube::Json& schema) const;
  // Returns the schema with every reference replaced by its target, whose members get their
  // descriptions.
  kube::Json expand(const kube::Json& schema, const kube::Json& descriptions = {}) const;

 private:
  KubernetesTypes();
  kube::Json types_;
};

}  // namespace trainer
