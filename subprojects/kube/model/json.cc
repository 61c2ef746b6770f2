#include "kube/model/json.hh"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace kube {
namespace {

// An object that is built member by member reserves this many.
constexpr std::size_t kUsualMembers = 4;

// Returns the place of `name`, or the end. Nearly all objects of Kubernetes have few members. Those
// are searched one by one: names of another length are skipped without reading their letters.
JsonObject::iterator locate(JsonObject::Members& members, std::string_view name) {
  constexpr std::size_t kFew = 16;
  if (members.size() <= kFew) {
    return std::find_if(members.begin(), members.end(),
                        [name](const JsonObject::Member& member) { return member.first == name; });
  }
  const auto at = std::ranges::lower_bound(members, name, {}, &JsonObject::Member::first);
  return at != members.end() && at->first == name ? at : members.end();
}

// Equal names keep their order. Indexes are sorted, since moving members during the sort costs much
// more.
void sort_by_name(JsonObject::Members& members) {
  if (std::ranges::is_sorted(members, {}, &JsonObject::Member::first)) return;
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // For equal names the lower index is less, so no stable sort, with its buffer, is needed.
  std::sort(order.begin(), order.end(), [&members](std::size_t a, std::size_t b) {
    const int names = members[a].first.compare(members[b].first);
    return names != 0 ? names < 0 : a < b;
  });
  JsonObject::Members sorted;
  sorted.reserve(members.size());
  for (const std::size_t i : order) sorted.push_back(std::move(members[i]));
  members = std::move(sorted);
}

const Json::Array kNoItems;
const JsonObject kNoMembers;

}  // namespace

Json* JsonObject::find(std::string_view name) {
  const auto at = locate(members_, name);
  return at != members_.end() ? &at->second : nullptr;
}

Json& JsonObject::operator[](std::string_view name) {
  auto at = std::ranges::lower_bound(members_, name, {}, &Member::first);
  if (at != members_.end() && at->first == name) return at->second;
  if (members_.capacity() == 0) {
    members_.reserve(kUsualMembers);
    at = members_.begin();
  }
  return members_.emplace(at, std::string(name), Json())->second;
}

bool JsonObject::erase(std::string_view name) {
  const auto at = locate(members_, name);
  if (at == members_.end()) return false;
  members_.erase(at);
  return true;
}

JsonObject JsonObject::of(Members members) {
  sort_by_name(members);
  const auto same_name = [](const Member& a, const Member& b) { return a.first == b.first; };
  const auto kept = std::unique(members.rbegin(), members.rend(), same_name).base();
  members.erase(members.begin(), kept);
  return of_sorted(std::move(members));
}

JsonObject JsonObject::of_sorted(Members members) {
  JsonObject object;
  object.members_ = std::move(members);
  return object;
}

bool operator==(const JsonObject& a, const JsonObject& b) {
  return a.members_ == b.members_;
}

Json Json::object(std::initializer_list<Named> members) {
  JsonObject::Members moved;
  moved.reserve(members.size());
  for (const Named& member : members) moved.emplace_back(member.name, std::move(member.value));
  return JsonObject::of(std::move(moved));
}

Json Json::array(std::initializer_list<Json> items) {
  return Array(items.begin(), items.end());
}

std::string_view Json::type_name() const {
  constexpr std::string_view kNames[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};
  return kNames[value_.index()];
}

Json* Json::find(std::string_view name) {
  auto* object = std::get_if<Object>(&value_);
  return object ? object->find(name) : nullptr;
}

const Json& Json::null() {
  static const Json kNull;
  return kNull;
}

const Json& Json::get(std::string_view name) const {
  const Json* found = find(name);
  return found ? *found : null();
}

const Json& Json::get_path(std::initializer_list<std::string_view> path) const {
  const Json* found = find_path(path);
  return found ? *found : null();
}

Json* Json::find_path(std::initializer_list<std::string_view> path) {
  Json* at = this;
  for (const auto name : path) {
    at = at->find(name);
    if (!at) return nullptr;
  }
  return at;
}

std::string_view Json::get_string(std::string_view name, std::string_view otherwise) const {
  const Json* member = find(name);
  return member && member->is_string() ? std::string_view(member->as_string()) : otherwise;
}

std::int64_t Json::get_int(std::string_view name, std::int64_t otherwise) const {
  const Json* member = find(name);
  return member && member->is_int() ? member->as_int() : otherwise;
}

bool Json::get_bool(std::string_view name, bool otherwise) const {
  const Json* member = find(name);
  return member && member->is_bool() ? member->as_bool() : otherwise;
}

const Json::Array& Json::get_array(std::string_view name) const {
  const Json* member = find(name);
  return member && member->is_array() ? member->as_array() : kNoItems;
}

const Json::Object& Json::get_object(std::string_view name) const {
  const Json* member = find(name);
  return member && member->is_object() ? member->as_object() : kNoMembers;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  return as_object()[name];
}

Json& Json::set(std::string_view name, Json value) {
  (*this)[name] = std::move(value);
  return *this;
}

bool Json::erase(std::string_view name) {
  auto* object = std::get_if<Object>(&value_);
  return object && object->erase(name);
}

Json& Json::push_back(Json item) {
  if (is_null()) value_ = Array();
  return as_array().emplace_back(std::move(item));
}

bool Json::empty() const {
  if (is_null()) return true;
  if (is_string()) return as_string().empty();
  if (is_array()) return as_array().empty();
  return is_object() && as_object().empty();
}

std::size_t Json::size() const {
  if (is_array()) return as_array().size();
  return is_object() ? as_object().size() : 0;
}

bool operator==(const Json& a, const Json& b) {
  return a.value_ == b.value_;
}

std::size_t weight_of(const Json& value) {
  std::size_t weight = 1;
  if (value.is_string()) return weight + value.as_string().size() / 64;
  if (value.is_array()) {
    for (const Json& item : value.as_array()) weight += weight_of(item);
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.as_object())
      weight += name.size() / 64 + weight_of(member);
  }
  return weight;
}

}  // namespace kube
