// The fields that a document of a schema can set, and values for them. Schemas come from
// describe() and from the types of Kubernetes, so a new field is tried without a change here.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace trainer::fate {

// A scalar that a document can set. An object whose members are not declared counts as one.
struct Field {
  // Names of members from the root of the document. kItem is an item of a list, kEntry a value of a
  // map whose keys are data.
  std::vector<std::string> steps;
  const kube::Json* schema = nullptr;  // lives as long as that of the document

  // Returns the path in the form of messages, except for the text between brackets:
  // "spec.trainer.env[].value".
  std::string path() const;
};
inline constexpr std::string_view kItem = "[]";
inline constexpr std::string_view kEntry = "{}";

// The fields below `spec`; all other parts are the API server's and the controllers'.
std::vector<Field> fields_of(const kube::Json& schema);

// Two values that a field may have. If the field has an effect, something that is created differs.
struct Pair {
  kube::Json one;
  kube::Json other;
  std::string marker;  // a text that occurs nowhere else; "" where `one` is no such text
};

class Values {
 public:
  explicit Values(std::uint32_t seed) : random_(seed) {}

  std::string text();  // a marker that is a valid name
  std::int64_t number(std::int64_t least, std::int64_t most);
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(number(0, std::ssize(items) - 1))];
  }
  // Values for a field. Rules that the schema cannot say may refuse some of them, so there are
  // several, the likeliest first.
  std::vector<Pair> pairs_for(const kube::Json& schema);
  // The least value that the schema accepts, with markers in all that is required.
  kube::Json least(const kube::Json& schema);

 private:
  Pair pair_of_texts(std::string_view prefix);
  void add_numbers(const kube::Json& schema, std::vector<Pair>& pairs);

  std::mt19937 random_;
};

// Makes the place of a field in the document, and returns it, to be set. Missing parts on the way
// are made from the schema. Existing replicated jobs, containers, patches and roles are used, one
// of them by chance; to every other list an item is added.
kube::Json& place(kube::Json& document, const kube::Json& schema, const Field& field,
                  Values& values);

}  // namespace trainer::fate
