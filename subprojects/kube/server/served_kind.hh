// An API server knows this about one kind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/patch.hh"
#include "kube/model/time.hh"

namespace kube::server {

// This is a column of a Table, by the description in a CustomResourceDefinition.
struct Column {
  std::string name;
  std::string type;  // string, integer, number, boolean or date
  std::string path;  // the JSONPath of one member
  std::string description;
  int priority = 0;  // above 0: shown only with -o wide
};

struct ScalePaths {
  std::string spec_replicas;
  std::string status_replicas;
  std::string label_selector;  // may be empty
};

struct ServedKind {
  Resource resource;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool has_status = false;
  std::optional<ScalePaths> scale;
  std::vector<Column> columns;
  // Returns all cells of a Table's row, if JSONPaths do not suffice (a Pod's READY); `columns` are
  // then all its columns. If it is empty, the name goes before `columns`, and the age if those are
  // empty, too.
  std::function<Json(const Json& object, Time now)> cells;
  // This is a structural OpenAPI v3 schema of the whole object; null allows anything. Lists say by
  // `x-kubernetes-list-type` and `-map-keys` how server-side apply merges them.
  std::shared_ptr<const Json> schema;
  // Returns the type that a part of the schema refers to, whose keywords count beside the part's
  // own; nullptr if it refers to none. May be empty.
  std::function<const Json*(const Json& schema)> target_of;
  // The table says how strategic merge patches merge lists; if it is nullptr, such patches are
  // answered 415.
  std::shared_ptr<const MergeKeys> merge_keys;
  // Returns the error of a decoder of Go if an object does not fit the kind's struct, see
  // decoding_problem(); "" if it fits. The other functions get only objects that fit. It is empty
  // for custom resources, which have no structs: `check` finds errors in their types.
  std::function<std::string(const Json& object)> decoding_problem;
  // Fills in defaults before an object is checked. It is called several times for one write, so it
  // must be idempotent. In the last call the object has a uid and, on a create, no status of the
  // client: a Job's selector and the status of a new Pod are defaults, too. May be empty.
  std::function<void(Json& object)> set_defaults;
  // Returns the errors for which a write is refused with 422; `before` is nullptr for a create. May
  // be empty.
  std::function<FieldErrors(const Json& object, const Json* before)> check;
  // Returns the paths of the fields that the schema does not have, in the object of the request.
  // May be empty.
  std::function<std::vector<std::string>(const Json& object)> unknown_fields;
  // This says whether metadata.generation counts changes of everything except metadata and status.
  bool has_generation = true;
};

// Kinds in the order in which discovery lists them. A kind with several versions has an entry for
// each; the first one of a group and plural is stored, and versions share one representation.
using ServedKinds = std::vector<ServedKind>;

}  // namespace kube::server
