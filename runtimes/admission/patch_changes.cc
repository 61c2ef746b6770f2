#include "runtimes/admission/patch_changes.hh"

#include "runtimes/trainjob/difference.hh"

namespace trainer {
namespace {

using kube::Json;

Json without_time(Json patch) {
  patch.erase("time");
  return patch;
}

const Json::Array& patches_of(const Json& trainjob) {
  static const Json::Array kNone;
  const Json* spec = trainjob.find("spec");
  return spec ? spec->get_array("runtimePatches") : kNone;
}

}  // namespace

bool is_patch_changed(const Json& before, const Json& after) {
  return !is_equivalent(without_time(before), without_time(after));
}

bool are_patches_changed(const Json& before, const Json& after) {
  const Json::Array& old_patches = patches_of(before);
  const Json::Array& new_patches = patches_of(after);
  if (old_patches.size() != new_patches.size()) return true;
  for (std::size_t i = 0; i < old_patches.size(); ++i) {
    if (is_patch_changed(old_patches[i], new_patches[i])) return true;
  }
  return false;
}

}  // namespace trainer
