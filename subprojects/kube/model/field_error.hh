// The results of validation have the form and wording of
// k8s.io/apimachinery/pkg/util/validation/field.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/json.hh"

namespace kube {

struct FieldError {
  enum class Type {
    kInvalid,
    kRequired,
    kForbidden,
    kNotSupported,
    kDuplicate,
    kTooLong,
    kTooMany,
    kTypeInvalid,
    kInternal
  };
  Type type = Type::kInvalid;
  std::string path;  // "spec.trainer.env[2].name"; "" for an error about the whole object
  Json value;  // the offending value; not printed for kRequired, kForbidden, kTooLong and kInternal
  std::string detail;  // the problem, and how to fix it

  // Returns "spec.trainer.numNodes: Invalid value: -1: must be at least 0"; a value longer than 300
  // characters is cut.
  std::string to_string() const;
  friend bool operator==(const FieldError&, const FieldError&) = default;
};

using FieldErrors = std::vector<FieldError>;

// Returns one error bare and several as "[a, b]", duplicates once: field.ErrorList.ToAggregate()
// prints them so.
std::string to_string(const FieldErrors& errors);
// Removes the errors that are printed like one of `known`: the stored object has them already.
void erase_known(FieldErrors& errors, const FieldErrors& known);

FieldError invalid(std::string path, Json value, std::string detail);
template <class First, class... Rest>
FieldError invalid(std::string path, Json value, fmt::format_string<First, Rest...> detail,
                   First&& first, Rest&&... rest) {
  return invalid(std::move(path), std::move(value),
                 fmt::format(detail, std::forward<First>(first), std::forward<Rest>(rest)...));
}
FieldError forbidden(std::string path, std::string detail);
FieldError required(std::string path, std::string detail);
// The detail lists the values that are allowed.
FieldError not_supported(std::string path, Json value,
                         const std::vector<std::string_view>& supported);
FieldError too_long(std::string path, std::size_t limit);  // in bytes
FieldError too_many(std::string path, std::size_t count, std::size_t limit);
FieldError duplicate(std::string path, Json value);

// Joins a path and a name: "spec.a" + "b" -> "spec.a.b"; "" + "b" -> "b"; ("spec.items", 3) ->
// "spec.items[3]"; ("labels", "x/y") by key -> "labels[x/y]".
std::string join_field(std::string_view path, std::string_view member);
std::string join_index(std::string_view path, std::size_t index);
std::string join_key(std::string_view path, std::string_view key);

}  // namespace kube
