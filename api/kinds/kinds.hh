// This project defines these kinds: a kind's value is the content of its CustomResourceDefinition.
// A kind has its own file in this folder, and a line in registry.cc; those of V1 jobs are in
// runtimes/v1.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "api/describe/schema_builder.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// This is a column of `kubectl get`.
struct PrinterColumn {
  std::string_view name;
  std::string_view type;  // string, integer or date
  std::string_view path;  // JSONPath of one member
  std::string_view description = {};
  int priority = 0;  // above 0: only with -o wide
};
inline constexpr PrinterColumn kAgeColumn{"Age", "date", ".metadata.creationTimestamp"};

// This is the subresource `scale`, with JSONPaths of one member each.
struct ScaleSubresource {
  std::string_view spec_replicas_path;
  std::string_view status_replicas_path;
  std::string_view label_selector_path = {};
};

struct KindVersion {
  std::string_view name;
  std::function<wire::Schema()> make_schema;
  std::vector<PrinterColumn> columns = {};
  bool has_status = true;
  std::optional<ScaleSubresource> scale = {};
  bool is_served = true;
  bool is_stored = true;  // true for one version of a kind
};

struct ApiKind {
  kube::Resource resource;
  std::vector<KindVersion> versions;
};

// Returns the schema of a whole object, from the struct that describes it.
template <class T>
wire::Schema root_schema() {
  wire::Schema schema;
  schema.document = wire::schema_of<T>(schema.predicates);
  for (const char* name : {"apiVersion", "kind"})
    schema.document["properties"].set(name, wire::scalar_schema("string"));
  return schema;
}

ApiKind trainjob_kind();
ApiKind training_runtime_kind();
ApiKind cluster_training_runtime_kind();
ApiKind jobset_kind();

// Returns all of them, in the order in which they are installed.
const std::vector<ApiKind>& api_kinds();

// Returns the schema of the stored version of one of them, or nullptr. It is made on the first
// call, and kept as long as the program runs.
const wire::Schema* find_schema(std::string_view kind);

kube::Json custom_resource_definition(const ApiKind& kind);

}  // namespace trainer
