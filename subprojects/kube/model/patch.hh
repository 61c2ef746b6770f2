// The Kubernetes API changes a JSON document in three ways. Places are RFC 6901 pointers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

// Pointers are those of RFC 6901. `pointer_get` returns nullptr if the path does not exist; "" is
// the whole document.
const Json* pointer_get(const Json& document, std::string_view pointer);
// Joins one reference token to a pointer, escaping "~" and "/".
std::string pointer_join(std::string_view pointer, std::string_view token);

// Merges by RFC 7396: null removes, objects merge, everything else replaces.
Json merge_patch(Json target, const Json& patch);
// Returns the smallest merge patch (RFC 7396) that turns `from` into `to`; null if they are equal.
// Members that are null in `to` count as absent.
Json merge_diff(const Json& from, const Json& to);

// Returns RFC 6902 operations (add, remove, replace) that turn `from` into `to`; an empty array if
// they are equal.
Json json_patch_diff(const Json& from, const Json& to);
// Applies the operations of a patch, or of the answer of a mutating webhook: add, remove, replace,
// test, copy and move. The API server does the same. Errors name the path: kUnsupported for any
// other operation, kInvalid for a path that does not exist or a test that fails, kTooLarge if
// copies add more than 3 MiB in all.
Result<Json> apply_json_patch(Json document, const Json& operations);

// The table says how the lists below a type merge. It has keys by the dotted path of member names
// from the type's root, without indices, e.g.
// "replicatedJobs.template.spec.template.spec.containers.env" -> "name". A list that is not in the
// table is atomic: the patch's list replaces it. The key of a list of scalars that merges as a set
// is "".
class MergeKeys {
 public:
  MergeKeys() = default;
  explicit MergeKeys(std::map<std::string, std::string, std::less<>> keys)
      : keys_(std::move(keys)) {}
  std::optional<std::string_view> key_of(std::string_view path) const;

 private:
  std::map<std::string, std::string, std::less<>> keys_;
};

// Applies a strategic merge patch by the rules of k8s.io/apimachinery/pkg/util/strategicpatch.
// There are no directives ($patch, $retainKeys, $setElementOrder), which this program's inputs
// cannot hold. Objects merge, null removes, and keyed lists merge by their key. A merged list has
// the items of the patch in the patch's order, and the other items of the target in the target's
// order. When the next item of the patch is compared with the next other item of the target, the
// target's comes first only if the patch's item is also in the target, behind it. Errors
// (kInvalid): an item of a keyed list without its key, with the path.
Result<Json> strategic_merge(Json target, const Json& patch, const MergeKeys& keys);

// Does the same with the directives that kubectl sends: `$patch` (replace, delete, merge) in
// objects and in items of lists, `$retainKeys`, `$setElementOrder/LIST` and
// `$deleteFromPrimitiveList/LIST`. Lists of scalars whose key in the table is "" merge as sets.
// Errors (kInvalid) name the path.
Result<Json> strategic_merge_with_directives(Json target, const Json& patch, const MergeKeys& keys);

}  // namespace kube
