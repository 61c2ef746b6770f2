// A JSON value is a regular type: copyable, comparable, movable. Everything that this program does
// not interpret is a Json.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kube {

class Json;

// This holds the members of a JSON object, sorted by name. Lookups are O(log n); adding a member
// out of order is O(n).
class JsonObject {
 public:
  using Member = std::pair<std::string, Json>;
  using Members = std::vector<Member>;
  using iterator = Members::iterator;
  using const_iterator = Members::const_iterator;

  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  std::size_t size() const;
  bool empty() const;
  Json* find(std::string_view name);
  const Json* find(std::string_view name) const {
    return const_cast<JsonObject*>(this)->find(name);
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  Json& operator[](std::string_view name);  // it is made (as null) if it is missing
  bool erase(std::string_view name);        // false if there was none
  // Removes the members for which `keep(member)` is false, in one pass; `keep` may change values.
  template <class Keep>
  void keep_if(const Keep& keep);
  // Makes an object from members in any order: O(n log n), so no document can make the parser
  // quadratic. If members have equal names, the last one stays.
  static JsonObject of(Members members);
  // Does the same for members that are sorted already, each name once.
  static JsonObject of_sorted(Members members);

  friend bool operator==(const JsonObject& a, const JsonObject& b);

 private:
  Members members_;
};

// Guarantees: value semantics; objects keep their members sorted by name, so equality and printing
// do not depend on the order in which members were added; numbers are int64 or double, as in the
// Kubernetes API machinery, and an integer never equals a double. Concurrency: as a std::string.
// Errors: the as_*() accessors throw std::bad_variant_access (a bug); use the get_*() lookups on
// input that is not trusted.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = JsonObject;

  Json() noexcept = default;  // null
  Json(std::nullptr_t) noexcept {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(static_cast<std::int64_t>(value)) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // `Json::object({{"name", "node"}, {"replicas", 1}})` makes an object; the last one of equal
  // names stays. The values are moved, not copied.
  struct Named;
  static Json object(std::initializer_list<Named> members);
  static Json object() { return Object(); }
  static Json array(std::initializer_list<Json> items = {});

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // "null", "boolean", "integer", "number", "string", "array" or "object".
  std::string_view type_name() const;

  bool as_bool() const { return std::get<bool>(value_); }
  std::int64_t as_int() const { return std::get<std::int64_t>(value_); }
  double as_double() const {
    return is_int() ? static_cast<double>(as_int()) : std::get<double>(value_);
  }
  const std::string& as_string() const { return std::get<std::string>(value_); }
  std::string& as_string() { return std::get<std::string>(value_); }
  const Array& as_array() const { return std::get<Array>(value_); }
  Array& as_array() { return std::get<Array>(value_); }
  const Object& as_object() const { return std::get<Object>(value_); }
  Object& as_object() { return std::get<Object>(value_); }

  // Returns the member, or nullptr if this is no object or has no such member. Never throws.
  Json* find(std::string_view name);
  const Json* find(std::string_view name) const { return const_cast<Json*>(this)->find(name); }
  // Returns the member, or a null value if this is no object or has no such member. Never throws.
  const Json& get(std::string_view name) const;
  const Json& get_path(std::initializer_list<std::string_view> path) const;
  static const Json& null();  // get() refers to it if there is no member
  // Returns the value below a path of members, or nullptr: `pod.find_path({"spec", "nodeName"})`.
  Json* find_path(std::initializer_list<std::string_view> path);
  const Json* find_path(std::initializer_list<std::string_view> path) const {
    return const_cast<Json*>(this)->find_path(path);
  }
  // Returns the member's string, integer or boolean, or `otherwise` if it is absent or of another
  // type.
  std::string_view get_string(std::string_view name, std::string_view otherwise = {}) const;
  std::int64_t get_int(std::string_view name, std::int64_t otherwise = 0) const;
  bool get_bool(std::string_view name, bool otherwise = false) const;
  // Returns the member's items or members; an empty container if it is absent or of another type.
  const Array& get_array(std::string_view name) const;
  const Object& get_object(std::string_view name) const;

  // Returns the member, made (as null) if it is missing. A null value becomes an object first; any
  // other type throws.
  Json& operator[](std::string_view name);
  // Sets a member and returns this, to build objects in one expression.
  Json& set(std::string_view name, Json value);
  // Removes a member; returns false if there was none.
  bool erase(std::string_view name);
  // Appends to an array; null becomes an array first.
  Json& push_back(Json item);
  bool empty() const;        // null, "", [] or {}
  std::size_t size() const;  // items or members; 0 for scalars

  friend bool operator==(const Json& a, const Json& b);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// Returns the cost of copying a value: the number of its values, and its text by the cache line.
std::size_t weight_of(const Json& value);

// Json::object() takes these. The elements of an initializer list are const; the value is mutable,
// so that it can be moved from.
struct Json::Named {
  std::string_view name;
  mutable Json value;
};

template <class Keep>
void JsonObject::keep_if(const Keep& keep) {
  auto kept = members_.begin();
  for (Member& member : members_) {
    if (!keep(member)) continue;
    if (&*kept != &member) *kept = std::move(member);
    ++kept;
  }
  members_.erase(kept, members_.end());
}
inline JsonObject::iterator JsonObject::begin() {
  return members_.begin();
}
inline JsonObject::iterator JsonObject::end() {
  return members_.end();
}
inline JsonObject::const_iterator JsonObject::begin() const {
  return members_.begin();
}
inline JsonObject::const_iterator JsonObject::end() const {
  return members_.end();
}
inline std::size_t JsonObject::size() const {
  return members_.size();
}
inline bool JsonObject::empty() const {
  return members_.empty();
}

}  // namespace kube
