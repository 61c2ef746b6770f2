// Json is read into a described struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/describe/attributes.hh"
#include "api/describe/path.hh"
#include "api/int_or_string.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer::wire {

// Adds "must be of type EXPECTED, found ..." at `path`.
void add_type_error(const FieldPath& path, const kube::Json& value, std::string_view expected,
                    kube::FieldErrors& errors);

// There is one overload for each type. A value of a wrong type leaves `out` unchanged and adds an
// error; null counts as an absent member, since it does for the API server.
void read(const kube::Json& value, const FieldPath& path, std::string& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const FieldPath& path, bool& out, kube::FieldErrors& errors);
void read(const kube::Json& value, const FieldPath& path, std::int32_t& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const FieldPath& path, std::int64_t& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const FieldPath& path, IntOrString& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const FieldPath& path, kube::Time& out,
          kube::FieldErrors& errors);
void read(const kube::Json& value, const FieldPath& path, kube::Condition& out,
          kube::FieldErrors& errors);
// A value that stays Json is an object of Kubernetes; its members are not checked here.
void read(const kube::Json& value, const FieldPath& path, kube::Json& out,
          kube::FieldErrors& errors);
template <class T>
void read(const kube::Json& value, const FieldPath& path, std::optional<T>& out,
          kube::FieldErrors& errors);
template <class T>
void read(const kube::Json& value, const FieldPath& path, std::vector<T>& out,
          kube::FieldErrors& errors);
template <class T>
void read(const kube::Json& value, const FieldPath& path,
          std::map<std::string, T, std::less<>>& out, kube::FieldErrors& errors);
template <class T>
  requires requires { sizeof(T::unknown); }
void read(const kube::Json& value, const FieldPath& path, T& out, kube::FieldErrors& errors);

// This is the visitor: it takes each described member out of `object`, and leaves the others in
// `unknown`.
template <class T>
class Reader {
 public:
  Reader(const kube::Json& object, const FieldPath& path, T& out, kube::FieldErrors& errors)
      : object_(object), path_(path), out_(out), errors_(errors) {
    known_.reserve(kUsualFields);
  }

  template <class Member>
  NoAttributes field(std::string_view name, Member T::*member) {
    const kube::Json* value = find(name);
    if (value != nullptr && !value->is_null())
      read(*value, FieldPath(path_, name), out_.*member, errors_);
    return {};
  }
  // metadata is read from the whole object.
  NoAttributes field(std::string_view name, kube::ObjectMeta T::*member) {
    find(name);
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
  // Such a member is made from the other members when it is written, so the value is not read here.
  template <class Member>
  NoAttributes derived(std::string_view name, Member (T::*)() const) {
    find(name);
    return {};
  }
  // Such a member stays among the unknown members, where admission finds it.
  void removed(std::string_view, Removed, std::string_view) {}
  NoAttributes self() { return {}; }

  // Call this after describe().
  void keep_unknown() {
    if constexpr (requires { out_.unknown; }) {
      if (found_ == object_.size()) return;  // most objects have no others
      for (const auto& [name, value] : object_.as_object())
        if (!is_known(name)) out_.unknown.set(name, value);
    }
  }

 private:
  const kube::Json* find(std::string_view name) {
    known_.push_back(name);
    const kube::Json* value = object_.find(name);
    found_ += value != nullptr ? 1 : 0;
    return value;
  }
  bool is_known(std::string_view name) const {
    for (const std::string_view known : known_)
      if (known == name) return true;
    return false;
  }

  static constexpr std::size_t kUsualFields = 16;
  const kube::Json& object_;
  const FieldPath& path_;
  T& out_;
  kube::FieldErrors& errors_;
  std::vector<std::string_view> known_;
  std::size_t found_ = 0;  // the known members that the object has
};

template <class T>
void read(const kube::Json& value, const FieldPath& path, std::optional<T>& out,
          kube::FieldErrors& errors) {
  T inner{};
  const std::size_t before = errors.size();
  read(value, path, inner, errors);
  if (errors.size() == before) out = std::move(inner);
}

template <class T>
void read(const kube::Json& value, const FieldPath& path, std::vector<T>& out,
          kube::FieldErrors& errors) {
  if (!value.is_array()) return add_type_error(path, value, "array", errors);
  const kube::Json::Array& items = value.as_array();
  out.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) read(items[i], FieldPath(path, i), out[i], errors);
}

// A member that is null has an empty value.
template <class T>
void read(const kube::Json& value, const FieldPath& path,
          std::map<std::string, T, std::less<>>& out, kube::FieldErrors& errors) {
  if (!value.is_object()) return add_type_error(path, value, "object", errors);
  for (const auto& [name, item] : value.as_object()) {
    T& read_item = out[name];
    if (!item.is_null()) read(item, FieldPath(path, name), read_item, errors);
  }
}

// This reads a whole object: the root of a document, whether or not its struct has an `unknown`.
template <class T>
void read_object(const kube::Json& value, const FieldPath& path, T& out,
                 kube::FieldErrors& errors) {
  if (!value.is_object()) return add_type_error(path, value, "object", errors);
  Reader<T> reader(value, path, out, errors);
  T::describe(reader);
  reader.keep_unknown();
}

template <class T>
  requires requires { sizeof(T::unknown); }
void read(const kube::Json& value, const FieldPath& path, T& out, kube::FieldErrors& errors) {
  read_object(value, path, out, errors);
}

}  // namespace trainer::wire
