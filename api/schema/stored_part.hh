// A part of the new object corresponds to a part of the stored one by the rules of the API server
// (apiextensions-apiserver, pkg/apiserver/schema/cel): members by their names, and items by the
// keys of a list map.
#pragma once

#include <cstddef>
#include <string_view>

#include "api/schema/schema_view.hh"
#include "kube/model/json.hh"

namespace trainer {

// Returns the stored member, or nullptr; `before` may be nullptr.
inline const kube::Json* stored_member(const kube::Json* before, std::string_view name) {
  return before == nullptr ? nullptr : before->find(name);
}

// Returns the stored item with the keys of item `i`, or nullptr, also for lists that are no map;
// `before` may be nullptr. The search begins at the same index, where most items are.
inline const kube::Json* stored_item(const kube::Json* before, const kube::Json::Array& items,
                                     std::size_t i, const SchemaView& list) {
  if (before == nullptr || !before->is_array() || list.text("x-kubernetes-list-type") != "map")
    return nullptr;
  const kube::Json::Array& keys = list.list("x-kubernetes-list-map-keys");
  const kube::Json::Array& others = before->as_array();
  for (std::size_t n = 0; n < others.size(); ++n) {
    const kube::Json& other = others[(i + n) % others.size()];
    bool is_same = true;
    for (const kube::Json& key : keys)
      if (other.get(key.as_string()) != items[i].get(key.as_string())) is_same = false;
    if (is_same) return &other;
  }
  return nullptr;
}

}  // namespace trainer
