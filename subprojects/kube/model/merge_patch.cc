#include <utility>

#include "kube/model/patch.hh"

namespace kube {
namespace {

// Returns the value without its null members. Lists stay unchanged: a merge patch replaces them
// whole, nulls included.
Json without_nulls(const Json& value) {
  if (!value.is_object()) return value;
  JsonObject::Members kept;
  for (const auto& [name, member] : value.as_object()) {
    if (!member.is_null()) kept.emplace_back(name, without_nulls(member));
  }
  return JsonObject::of(std::move(kept));
}

// Returns the members of the patch that turns `from` into `to`; empty if they are equal.
std::optional<Json> diff(const Json& from, const Json& to) {
  if (!from.is_object() || !to.is_object()) {
    if (from == to) return std::nullopt;
    return without_nulls(to);
  }
  JsonObject::Members changes;
  for (const auto& [name, before] : from.as_object()) {
    const Json* after = to.find(name);
    if (!before.is_null() && (!after || after->is_null())) changes.emplace_back(name, Json());
  }
  for (const auto& [name, after] : to.as_object()) {
    if (after.is_null()) continue;
    const Json* before = from.find(name);
    auto change = before ? diff(*before, after) : std::optional<Json>(without_nulls(after));
    if (change) changes.emplace_back(name, std::move(*change));
  }
  if (changes.empty()) return std::nullopt;
  return Json(JsonObject::of(std::move(changes)));
}

}  // namespace

Json merge_patch(Json target, const Json& patch) {
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

Json merge_diff(const Json& from, const Json& to) {
  return diff(from, to).value_or(Json());
}

}  // namespace kube
