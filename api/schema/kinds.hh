// The kinds we serve, and the schema of each.
#pragma once

#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// A column of `kubectl get`.
struct PrinterColumn {
  std::string_view name;
  std::string_view type;  // string, integer or date
  std::string_view path;  // JSONPath of one member
  std::string_view description = {};
  int priority = 0;  // above 0: only with -o wide
};

struct ServedKind {
  kube::Resource resource;
  bool has_status = true;
  std::vector<PrinterColumn> columns;
  // openAPIV3Schema; {"$ref": "#/NAME"} refers to a type of kubernetes.json, and what stands beside
  // it is added to that type.
  kube::Json (*make_schema)() = nullptr;
};

// In the order in which they are installed.
const std::vector<ServedKind>& served_kinds();

// Made once each, when first asked for. nullptr: no kind of ours.
const kube::Json* find_schema(std::string_view kind);

// Resolves references; keeps the types of Kubernetes in memory.
class KubernetesTypes {
 public:
  static const KubernetesTypes& instance();
  // The type that `schema` refers to, or nullptr.
  const kube::Json* target_of(const kube::Json& schema) const;
  // The schema with every reference replaced by what it refers to.
  kube::Json expand(const kube::Json& schema) const;

 private:
  KubernetesTypes();
  kube::Json types_;
};

}  // namespace trainer
