// The index finds the items of a long list by name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/json.hh"

namespace kube {

// The index has the positions of the names in a list; for equal names that of the first. It is made
// once if each item of one list is looked up in another: that takes O(n log n), not the product of
// their lengths. Borrows the names.
class NameIndex {
 public:
  // `name_of(item)` is a view that lives as long as the item.
  template <class Items, class NameOf>
  NameIndex(const Items& items, const NameOf& name_of) {
    entries_.reserve(items.size());
    for (const auto& item : items) entries_.emplace_back(name_of(item), entries_.size());
    std::sort(entries_.begin(), entries_.end());
  }
  // Uses the member `name`; "" if an item has none.
  explicit NameIndex(const Json::Array& items)
      : NameIndex(items, [](const Json& item) { return item.get_string("name"); }) {}

  std::optional<std::size_t> find(std::string_view name) const {
    const auto at = std::lower_bound(
        entries_.begin(), entries_.end(), name,
        [](const auto& entry, std::string_view desired) { return entry.first < desired; });
    if (at == entries_.end() || at->first != name) return std::nullopt;
    return at->second;
  }
  bool contains(std::string_view name) const { return find(name).has_value(); }

 private:
  std::vector<std::pair<std::string_view, std::size_t>> entries_;  // sorted
};

}  // namespace kube
