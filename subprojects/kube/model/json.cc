#include "kube/model/json.hh"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>

namespace kube {
namespace {

// An object that is built member by member has some of them.
constexpr std::size_t kUsualMembers = 4;

bool name_before(const JsonObject::Member& member, std::string_view name) {
  return member.first < name;
}

// The place of `name`, or the end. Of few members, as nearly all objects of Kubernetes have, those
// whose names have another length are passed by without reading their letters.
template <class Members>
auto locate(Members& members, std::string_view name) {
  constexpr std::size_t kFew = 16;
  if (members.size() <= kFew) {
    return std::find_if(members.begin(), members.end(),
                        [name](const JsonObject::Member& member) { return member.first == name; });
  }
  const auto at = std::lower_bound(members.begin(), members.end(), name, name_before);
  return at != members.end() && at->first == name ? at : members.end();
}

// Equal names keep their order. Numbers are put in order at a fraction of what moving members about
// costs.
void sort_by_name(JsonObject::Members& members) {
  const auto before = [](const JsonObject::Member& a, const JsonObject::Member& b) {
    return a.first < b.first;
  };
  if (std::is_sorted(members.begin(), members.end(), before)) return;
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // What was first is less, so that no stable sort with its buffer is needed.
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

const Json* JsonObject::find(std::string_view name) const {
  const auto at = locate(members_, name);
  return at != members_.end() ? &at->second : nullptr;
}

Json* JsonObject::find(std::string_view name) {
  const auto at = locate(members_, name);
  return at != members_.end() ? &at->second : nullptr;
}

Json& JsonObject::operator[](std::string_view name) {
  auto at = std::lower_bound(members_.begin(), members_.end(), name, name_before);
  if (at != members_.end() && at->first == name) return at->second;
  if (members_.capacity() == 0) {
    members_.reserve(kUsualMembers);
    at = members_.begin();
  }
  return members_.emplace(at, std::string(name), Json())->second;
}

bool JsonObject::erase(std::string_view name) {
  const auto at = std::lower_bound(members_.begin(), members_.end(), name, name_before);
  if (at == members_.end() || at->first != name) return false;
  members_.erase(at);
  return true;
}

std::optional<std::string> JsonObject::assign(Members members) {
  sort_by_name(members);
  std::optional<std::string> duplicate;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (kept > 0 && members[kept - 1].first == members[i].first) {
      duplicate = members[i].first;
      members[kept - 1].second = std::move(members[i].second);
    } else {
      if (kept != i) members[kept] = std::move(members[i]);
      ++kept;
    }
  }
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
  members_ = std::move(members);
  return duplicate;
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
  JsonObject object;
  object.assign(std::move(moved));
  return object;
}

Json Json::array(std::initializer_list<Json> items) {
  return Array(items.begin(), items.end());
}

std::string_view Json::type_name() const {
  if (is_null()) return "null";
  if (is_bool()) return "boolean";
  if (is_int()) return "integer";
  if (is_double()) return "number";
  if (is_string()) return "string";
  return is_array() ? "array" : "object";
}

const Json* Json::find(std::string_view name) const {
  const auto* object = std::get_if<Object>(&value_);
  return object ? object->find(name) : nullptr;
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

const Json* Json::find_path(std::initializer_list<std::string_view> path) const {
  const Json* at = this;
  for (const auto name : path) {
    at = at->find(name);
    if (!at) return nullptr;
  }
  return at;
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

}  // namespace kube
