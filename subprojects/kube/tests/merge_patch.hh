// Applies merge patches, as an API server does.
#pragma once

#include "kube/model/json.hh"

namespace kube::test {

// RFC 7396: null removes, objects merge, everything else replaces.
inline Json merge_patch(Json target, const Json& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = Json::object();
  for (const auto& [name, change] : patch.as_object()) {
    if (change.is_null()) {
      target.erase(name);
    } else {
      Json& member = target[name];
      member = merge_patch(std::move(member), change);
    }
  }
  return target;
}

}  // namespace kube::test
