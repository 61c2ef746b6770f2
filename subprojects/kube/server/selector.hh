// Lists, watches and deletions of collections have label and field selectors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

class Selector {
 public:
  // Labels have forms such as "a=b,c!=d,e in (f,g),h notin (i),j,!k", fields such as
  // "metadata.name=a,status.phase!=b". Errors (kBadRequest): a text that is no selector, and a
  // field by which the kind cannot be selected.
  static Result<Selector> parse(std::string_view labels, std::string_view fields,
                                const Resource& resource);
  bool matches(const Json& object) const;
  bool empty() const { return labels_.empty() && fields_.empty(); }

 private:
  struct Requirement {
    std::string key;
    enum class Operator { kIn, kNotIn, kExists, kAbsent } op = Operator::kIn;
    std::vector<std::string> values;
    bool allows(const std::string_view* value) const;  // nullptr: the label does not exist
  };
  static Result<Requirement> parse_set(std::string_view text, std::size_t open);
  static Result<Requirement> parse_label(std::string_view text);
  static Result<std::vector<Requirement>> parse_labels(std::string_view text);
  static Result<std::vector<Requirement>> parse_fields(std::string_view text,
                                                       const Resource& resource);
  std::vector<Requirement> labels_;
  std::vector<Requirement> fields_;  // keys are dotted paths
};

}  // namespace kube::server
