// describe() may say this about a field beyond its name and type. Only the schema reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "api/describe/patterns.hh"
#include "kube/model/json.hh"

namespace trainer::wire {

// Returns whether the member at the path below an object is absent from both, it and the stored
// one, or equal by CEL's rules.
using Same = std::function<bool(std::initializer_list<std::string_view> path)>;

// This is a rule of `x-kubernetes-validations`.
struct Rule {
  std::string_view cel;
  std::string_view message;
  // This is the same rule in C++, for use without an API server. `self` has the type that its
  // schema asks for. A rule that cannot be evaluated counts as violated, as in CEL. It is nullptr
  // for a rule that compares with the stored object.
  bool (*holds)(const kube::Json& self) = nullptr;
  // The member that a refusal names, as ".spec.trainer"; "" for the value itself.
  std::string_view field_path = {};
  // This is a rule that compares with the stored object, in C++.
  bool (*keeps)(const kube::Json& self, const kube::Json& before, const Same& same) = nullptr;
};

// CEL has no integer 2.0: a number with a point cannot be evaluated.
constexpr Rule at_least_one(std::string_view message) {
  return {"self >= 1", message,
          [](const kube::Json& self) { return self.is_int() && self.as_int() >= 1; }};
}

// This is the type of a removed member: one that the API no longer has, but that guides and old
// files still contain.
enum class Removed { kObject, kObjects, kStrings };

// These are attributes for a visitor that reads none of them: each member does nothing.
// SchemaAttributes (schema_builder.hh) has the same members and documents them; a visitor that
// reads some of them derives from this and redefines those.
template <class Derived>
struct UnreadAttributes {
  using Self = const Derived&;
  Self doc(std::string_view) const { return self(); }
  Self minimum(std::int64_t) const { return self(); }
  Self maximum(std::int64_t) const { return self(); }
  Self min_length(std::int64_t) const { return self(); }
  Self max_length(std::int64_t) const { return self(); }
  Self pattern(const Pattern&) const { return self(); }
  Self one_of(std::initializer_list<std::string_view>) const { return self(); }
  template <class Value>
  Self defaults_to(const Value&) const {
    return self();
  }
  Self rule(const Rule&) const { return self(); }
  Self immutable(std::string_view) const { return self(); }
  Self min_items(std::int64_t) const { return self(); }
  Self max_items(std::int64_t) const { return self(); }
  Self item_max_length(std::int64_t) const { return self(); }
  Self list_map(std::string_view) const { return self(); }
  Self list_set() const { return self(); }
  Self list_atomic() const { return self(); }
  Self map_atomic() const { return self(); }
  Self min_properties(std::int64_t) const { return self(); }
  Self kubernetes(std::string_view) const { return self(); }
  template <class Shape>
  Self shape() const {
    return self();
  }

 private:
  Self self() const { return static_cast<Self>(*this); }
};

// Readers and writers use these.
struct NoAttributes : UnreadAttributes<NoAttributes> {};

}  // namespace trainer::wire
