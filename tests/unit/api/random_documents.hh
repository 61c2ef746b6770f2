// Random documents of this project's kinds, made from their schemas.
#pragma once

#include <random>
#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer::test {

class RandomDocuments {
 public:
  enum class Members { kAny, kDeclared };

  explicit RandomDocuments(unsigned seed, Members members = Members::kAny)
      : members_(members), random_(seed) {}

  // An object of the kind that its schema accepts, in the form in which write() makes it: no empty
  // lists or strings, times in whole seconds. Typed objects hold unknown members at random places,
  // unless there shall be declared ones only.
  kube::Json object(std::string_view kind);
  // Any value at all.
  kube::Json anything(int depth = 3);
  // Replaces a value somewhere in the document by another one.
  void corrupt(kube::Json& document);

  // A value that the schema of the member `name` accepts.
  kube::Json value(const kube::Json& schema, std::string_view name);

 private:
  kube::Json object_value(const kube::Json& schema);
  kube::Json scalar(const kube::Json& schema);
  std::string word();
  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }
  bool random_bool() { return up_to(1) == 1; }

  Members members_;
  std::mt19937 random_;
};

}  // namespace trainer::test
