// What describe() may say about a field beyond its name and type. Only the schema reads it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "api/describe/patterns.hh"
#include "kube/model/json.hh"

namespace trainer::wire {

// A rule of `x-kubernetes-validations`.
struct Rule {
  std::string_view cel;
  std::string_view message;
  // The same rule in C++, for use where there is no API server. `self` has the type that its schema
  // asks for. A rule that cannot be evaluated is broken, as in CEL. nullptr for a rule that
  // compares with the stored object, and for those of OptimizationJob.
  bool (*holds)(const kube::Json& self) = nullptr;
};

// CEL has no integer 2.0: a number with a point cannot be evaluated.
constexpr Rule at_least_one(std::string_view message) {
  return {"self >= 1", message,
          [](const kube::Json& self) { return self.is_int() && self.as_int() >= 1; }};
}

// The type of a member that was taken out of the API but is still found in guides and old files.
enum class Removed { kObject, kObjects, kStrings, kIntOrString };

// The attributes as readers and writers see them: nothing. SchemaAttributes (schema_builder.hh) has
// the same members and documents them.
struct NoAttributes {
  using Self = const NoAttributes&;
  Self doc(std::string_view) const { return *this; }
  Self minimum(std::int64_t) const { return *this; }
  Self maximum(std::int64_t) const { return *this; }
  Self min_length(std::int64_t) const { return *this; }
  Self max_length(std::int64_t) const { return *this; }
  Self pattern(const Pattern&) const { return *this; }
  Self one_of(std::initializer_list<std::string_view>) const { return *this; }
  template <class Value>
  Self defaults_to(const Value&) const {
    return *this;
  }
  Self rule(const Rule&) const { return *this; }
  Self immutable(std::string_view) const { return *this; }
  Self min_items(std::int64_t) const { return *this; }
  Self max_items(std::int64_t) const { return *this; }
  Self item_max_length(std::int64_t) const { return *this; }
  Self list_map(std::string_view) const { return *this; }
  Self list_set() const { return *this; }
  Self list_atomic() const { return *this; }
  Self map_atomic() const { return *this; }
  Self min_properties(std::int64_t) const { return *this; }
  Self kubernetes(std::string_view) const { return *this; }
  template <class Shape>
  Self shape() const {
    return *this;
  }
};

}  // namespace trainer::wire
