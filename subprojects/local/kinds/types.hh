// The schemas of Kubernetes' own kinds come from api/schema/kubernetes.json. The API server's rules
// for a kind's schema are applied here. Pure.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/describe/schema_builder.hh"
#include "api/schema/kubernetes_types.hh"
#include "kube/model/patch.hh"
#include "kube/server/served_kind.hh"

namespace trainer::local {

using kube::FieldErrors;
using kube::Json;
using kube::server::ServedKind;
using SharedSchema = std::shared_ptr<const wire::Schema>;

class BuiltinTypes {
 public:
  BuiltinTypes();
  // Returns the schema of a whole object, all except its `metadata`, with references resolved.
  // Nothing below `status` is required: the server decodes statuses into structs, whose members may
  // be empty.
  SharedSchema schema(std::string_view kind) const;
  // Returns the error of Go's decoder if an object does not fit its kind's structs, else ""
  // (kube/server/decoding.hh).
  std::string decoding_problem(const kube::Resource& resource, const Json& object) const;
  std::shared_ptr<const kube::MergeKeys> merge_keys(std::string_view kind) const;

 private:
  Json data_;
  KubernetesTypes types_;
};

// A kind has these rules besides its schema.
struct Rules {
  void (*set_defaults)(Json& object) = nullptr;
  FieldErrors (*check)(const Json& object, const Json* before) = nullptr;
  // A list of type map or set may have an item twice. This is true for kinds of Kubernetes, where
  // only their own checks refuse that, for some lists.
  bool may_repeat = false;
};

// Sets the schema, and the functions that follow from it and the rules.
void use_schema(ServedKind& kind, SharedSchema schema, Rules rules = {});

// Sets a member that is absent.
void set_default(Json& object, std::string_view name, Json value);

// Adds "field is immutable" for each of these members of `after` that differs.
void check_immutable(const Json& after, const Json& before, std::string_view path,
                     std::initializer_list<std::string_view> names, FieldErrors& errors);

}  // namespace trainer::local
