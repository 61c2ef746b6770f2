// The three ways of changing a JSON document that the Kubernetes API knows, and RFC 6901 pointers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

// RFC 6901. `pointer_get` answers nullptr where the path does not exist; "" is the whole document.
const Json* pointer_get(const Json& document, std::string_view pointer);
// Joins one reference token to a pointer, escaping "~" and "/".
std::string pointer_join(std::string_view pointer, std::string_view token);

// RFC 7396: null removes, objects merge, everything else replaces.
Json merge_patch(Json target, const Json& patch);
// The smallest merge patch (RFC 7396) that turns `from` into `to`; null when they are equal.
// Members that are null in `to` count as absent.
Json merge_diff(const Json& from, const Json& to);

// RFC 6902 operations (add, remove, replace) that turn `from` into `to`; an empty array when they
// are equal.
Json json_patch_diff(const Json& from, const Json& to);
// Applies operations, as the API server does with a patch or the answer of a mutating webhook: add,
// remove, replace, test, copy and move. Errors: kUnsupported for any other operation, kInvalid for
// a path that does not exist and a test that fails, kTooLarge for copies of more than 3 MiB in all;
// they name the path.
Result<Json> apply_json_patch(Json document, const Json& operations);

// How the lists below a type merge: keyed by the dotted path of member names from the type's root,
// without indices, e.g. "replicatedJobs.template.spec.template.spec.containers.env" -> "name". A
// list that is not in the table is atomic: the patch's list replaces it. The key of a list of
// scalars that merges as a set is "".
class MergeKeys {
 public:
  MergeKeys() = default;
  explicit MergeKeys(std::map<std::string, std::string, std::less<>> keys)
      : keys_(std::move(keys)) {}
  std::optional<std::string_view> key_of(std::string_view path) const;

 private:
  std::map<std::string, std::string, std::less<>> keys_;
};

// Strategic merge patch as k8s.io/apimachinery/pkg/util/strategicpatch does it, without directives
// ($patch, $retainKeys, $setElementOrder, which our inputs cannot hold): objects merge, null
// removes, keyed lists merge by their key. A merged list has the items of the patch in their order
// there, and the items that only the target has in their order there. Between the next item of each
// kind, the target's comes first only if the patch's is also in the target, behind it. Errors
// (kInvalid): an item of a keyed list without its key, with the path.
Result<Json> strategic_merge(Json target, const Json& patch, const MergeKeys& keys);

// The same with the directives that kubectl sends: `$patch` (replace, delete, merge) in objects and
// in items of lists, `$retainKeys`, `$setElementOrder/LIST` and `$deleteFromPrimitiveList/LIST`.
// Lists of scalars whose key in the table is "" merge as sets. Errors (kInvalid) name the path.
Result<Json> strategic_merge_with_directives(Json target, const Json& patch, const MergeKeys& keys);

}  // namespace kube
