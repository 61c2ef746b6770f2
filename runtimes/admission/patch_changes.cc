#include "runtimes/admission/patch_changes.hh"

#include <algorithm>
#include <functional>

#include "kube/model/difference.hh"

namespace trainer {
namespace {

using kube::Json;

Json without_time(Json patch) {
  patch.erase("time");
  return patch;
}

}  // namespace

bool is_patch_changed(const Json& before, const Json& after) {
  return !is_equivalent(without_time(before), without_time(after));
}

bool are_patches_changed(const Json& before, const Json& after) {
  const Json::Array& old_patches = before.get("spec").get_array("runtimePatches");
  const Json::Array& new_patches = after.get("spec").get_array("runtimePatches");
  return !std::equal(old_patches.begin(), old_patches.end(), new_patches.begin(), new_patches.end(),
                     std::not_fn(is_patch_changed));
}

}  // namespace trainer
