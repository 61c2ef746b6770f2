#include "kube/model/difference.hh"

#include <algorithm>

namespace kube {

bool is_contained(const Json& desired, const Json& stored) {
  if (desired.is_object()) {
    if (!stored.is_object())
      return std::all_of(desired.as_object().begin(), desired.as_object().end(),
                         [](const auto& member) { return is_contained(member.second, Json()); });
    for (const auto& [name, value] : desired.as_object()) {
      const Json* found = stored.find(name);
      if (!is_contained(value, found ? *found : Json())) return false;
    }
    return true;
  }
  if (desired.is_array()) {
    if (desired.size() != stored.size() || (!stored.is_array() && desired.size() > 0)) return false;
    for (std::size_t i = 0; i < desired.size(); ++i) {
      if (!is_contained(desired.as_array()[i], stored.as_array()[i])) return false;
    }
    return true;
  }
  return desired.is_null() || desired == stored;
}

bool is_equivalent(const Json& a, const Json& b) {
  return is_contained(a, b) && is_contained(b, a);
}

}  // namespace kube
