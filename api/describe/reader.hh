// Json to a described struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/describe/attributes.hh"
#include "api/describe/path.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer::wire {

// Adds "must be of type EXPECTED, found ..." at `place`.
void add_type_error(const Place& place, const kube::Json& value, std::string_view expected,
                    kube::FieldErrors& errors);

// One overload a type. A value of a wrong type leaves `out` as it is and adds an error; null counts
// as absent wherever a member stands, as for the API server.
void read(const kube::Json& value, const Place& place, std::string& out, kube::FieldErrors& errors);
void read(const kube::Json& value, const Place& place, bool& out, kube::FieldErrors& errors);
void read(const kube::Json& value, const Place& place, std::int32_t& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const Place& place, std::int64_t& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const Place& place, kube::Time& out, kube::FieldErrors& errors);
void read(const kube::Json& value, const Place& place, kube::Condition& out,
          kube::FieldErrors& errors);
// What is only carried is an object of Kubernetes; what it holds is the API server's business.
void read(const kube::Json& value, const Place& place, kube::Json& out, kube::FieldErrors& errors);
template <class T>
void read(const kube::Json& value, const Place& place, std::optional<T>& out,
          kube::FieldErrors& errors);
template <class T>
void read(const kube::Json& value, const Place& place, std::vector<T>& out,
          kube::FieldErrors& errors);
template <class T>
  requires requires { sizeof(T::unknown); }
void read(const kube::Json& value, const Place& place, T& out, kube::FieldErrors& errors);

// The visitor: takes each described member out of `object`, and leaves the others in `unknown`.
template <class T>
class Reader {
 public:
  Reader(const kube::Json& object, const Place& place, T& out, kube::FieldErrors& errors)
      : object_(object), place_(place), out_(out), errors_(errors) {
    known_.reserve(kUsualFields);
  }

  template <class Member>
  NoAttributes field(std::string_view name, Member T::*member) {
    known_.push_back(name);
    const kube::Json* value = object_.find(name);
    if (value != nullptr && !value->is_null())
      read(*value, Place(place_, name), out_.*member, errors_);
    return {};
  }
  // metadata is read as a whole object has it.
  NoAttributes field(std::string_view name, kube::ObjectMeta T::*member) {
    known_.push_back(name);
    out_.*member = kube::ObjectMeta::of(object_);
    return {};
  }
  template <class Member>
  NoAttributes required(std::string_view name, Member T::*member) {
    return field(name, member);
  }
  template <class Member>
  NoAttributes always(std::string_view name, Member T::*member) {
    return field(name, member);
  }
  // Made from the other members when it is written; what it says here is not needed.
  template <class Member>
  NoAttributes derived(std::string_view name, Member (T::*)() const) {
    known_.push_back(name);
    return {};
  }
  // Stays among the unknown members, where admission looks for it.
  void removed(std::string_view, Removed, std::string_view) {}
  NoAttributes self() { return {}; }

  // Call after describe().
  void keep_unknown() {
    if constexpr (requires { out_.unknown; }) {
      for (const auto& [name, value] : object_.as_object())
        if (!is_known(name)) out_.unknown.set(name, value);
    }
  }

 private:
  bool is_known(std::string_view name) const {
    for (const std::string_view known : known_)
      if (known == name) return true;
    return false;
  }

  static constexpr std::size_t kUsualFields = 16;
  const kube::Json& object_;
  const Place& place_;
  T& out_;
  kube::FieldErrors& errors_;
  std::vector<std::string_view> known_;
};

template <class T>
void read(const kube::Json& value, const Place& place, std::optional<T>& out,
          kube::FieldErrors& errors) {
  T inner{};
  const std::size_t before = errors.size();
  read(value, place, inner, errors);
  if (errors.size() == before) out = std::move(inner);
}

template <class T>
void read(const kube::Json& value, const Place& place, std::vector<T>& out,
          kube::FieldErrors& errors) {
  if (!value.is_array()) return add_type_error(place, value, "array", errors);
  const kube::Json::Array& items = value.as_array();
  out.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) read(items[i], Place(place, i), out[i], errors);
}

// A whole object: the root of a document, whether or not its struct has an `unknown`.
template <class T>
void read_object(const kube::Json& value, const Place& place, T& out, kube::FieldErrors& errors) {
  if (!value.is_object()) return add_type_error(place, value, "object", errors);
  Reader<T> reader(value, place, out, errors);
  T::describe(reader);
  reader.keep_unknown();
}

template <class T>
  requires requires { sizeof(T::unknown); }
void read(const kube::Json& value, const Place& place, T& out, kube::FieldErrors& errors) {
  read_object(value, place, out, errors);
}

}  // namespace trainer::wire
