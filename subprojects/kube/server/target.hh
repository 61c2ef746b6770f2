// A request's path and query mean this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/model/meta.hh"
#include "kube/model/text.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

class Query {
 public:
  Query() = default;
  explicit Query(std::string_view text);  // the text behind the "?"
  // Returns the first value of this name; "" if there is none.
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  // Returns true for everything except absence, "0" and "false" in letters of any size, by the rule
  // of the API machinery: the Python client writes "True".
  bool is_true(std::string_view name) const;
  // Returns nullopt if it is missing or no number.
  std::optional<std::int64_t> get_int(std::string_view name) const {
    return parse_number<std::int64_t>(get(name));
  }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

struct Target {
  std::string path;  // unescaped
  Query query;
  const ServedKind* kind = nullptr;  // nullptr: the path is not that of an object or collection
  ObjectKey key;                     // no name: the collection
  std::string subresource;
};

const ServedKind* find_kind(const ServedKinds& kinds, std::string_view group,
                            std::string_view version, std::string_view plural);
// Returns the version of a kind in which its objects are stored: the first. nullptr says that it is
// not served.
const ServedKind* find_stored_kind(const ServedKinds& kinds, const Resource& resource);
Target parse_target(const ServedKinds& kinds, std::string_view target);

}  // namespace kube::server
