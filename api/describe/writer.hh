// A described struct is written to Json.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/describe/attributes.hh"
#include "api/int_or_string.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer::wire {

inline kube::Json to_json(const std::string& value) {
  return value;
}
inline kube::Json to_json(bool value) {
  return value;
}
inline kube::Json to_json(std::int32_t value) {
  return std::int64_t{value};
}
inline kube::Json to_json(std::int64_t value) {
  return value;
}
inline kube::Json to_json(const IntOrString& value) {
  return value.number ? to_json(*value.number) : kube::Json(value.word);
}
inline kube::Json to_json(const kube::Time& value) {
  return value.to_string();
}
inline kube::Json to_json(const kube::Condition& value) {
  return value.to_json();
}
inline kube::Json to_json(const kube::Json& value) {
  return value;
}
template <class T>
kube::Json to_json(const std::optional<T>& value);
template <class T>
kube::Json to_json(const std::vector<T>& value);
template <class T>
kube::Json to_json(const std::map<std::string, T, std::less<>>& value);
template <class T>
  requires requires { sizeof(T::unknown); }
kube::Json to_json(const T& value);

// Returns whether a member that is not required is left out. An optional that is set is always
// written, also if it holds {} or [].
inline bool is_absent(const std::string& value) {
  return value.empty();
}
inline bool is_absent(bool value) {
  return !value;
}
inline bool is_absent(std::int32_t value) {
  return value == 0;
}
inline bool is_absent(std::int64_t value) {
  return value == 0;
}
inline bool is_absent(const kube::Json& value) {
  return value.is_null();
}
template <class T>
bool is_absent(const std::optional<T>& value) {
  return !value.has_value();
}
template <class T>
bool is_absent(const std::vector<T>& value) {
  return value.empty();
}
template <class T>
  requires requires { sizeof(T::unknown); }
bool is_absent(const T& value) {
  return to_json(value).empty();
}

// This is the visitor: it collects the members, beside the unknown ones of the struct.
template <class T>
class Writer {
 public:
  explicit Writer(const T& value) : value_(value) {
    members_.reserve(kUsualMembers);
    if (value.unknown.is_object())
      members_.assign(value.unknown.as_object().begin(), value.unknown.as_object().end());
  }

  template <class Member>
  NoAttributes field(std::string_view name, Member T::*member) {
    if (!is_absent(value_.*member)) add(name, to_json(value_.*member));
    return {};
  }
  template <class Member>
  NoAttributes required(std::string_view name, Member T::*member) {
    return always(name, member);
  }
  // Such a member is written also if it is empty or zero.
  template <class Member>
  NoAttributes always(std::string_view name, Member T::*member) {
    add(name, to_json(value_.*member));
    return {};
  }
  template <class Member>
  NoAttributes derived(std::string_view name, Member (T::*make)() const) {
    add(name, to_json((value_.*make)()));
    return {};
  }
  void removed(std::string_view, Removed, std::string_view) {}
  NoAttributes self() { return {}; }

  // Call this once, after describe().
  kube::Json take() { return kube::Json::Object::of(std::move(members_)); }

 private:
  void add(std::string_view name, kube::Json value) {
    members_.emplace_back(std::string(name), std::move(value));
  }

  static constexpr std::size_t kUsualMembers = 8;
  const T& value_;
  kube::Json::Object::Members members_;
};

template <class T>
kube::Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : kube::Json();
}

template <class T>
kube::Json to_json(const std::vector<T>& value) {
  kube::Json::Array items;
  items.reserve(value.size());
  for (const T& item : value) items.push_back(to_json(item));
  return items;
}

template <class T>
kube::Json to_json(const std::map<std::string, T, std::less<>>& value) {
  kube::Json members = kube::Json::object();
  for (const auto& [name, item] : value) members.set(name, to_json(item));
  return members;
}

template <class T>
  requires requires { sizeof(T::unknown); }
kube::Json to_json(const T& value) {
  Writer<T> writer(value);
  T::describe(writer);
  return writer.take();
}

}  // namespace trainer::wire
