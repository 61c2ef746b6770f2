// YAML is converted to Json with the types of sigs.k8s.io/yaml (YAML 1.1 booleans, plain scalars
// typed, quoted ones strings). No other file knows yaml-cpp.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

// These limits are for one text. For texts that other users wrote they are lower than for files of
// the program's own user, since the parser needs a microsecond or more for each node.
struct YamlLimits {
  std::size_t max_bytes = 16U << 20;
  // This counts scalars (also the names of members), lists and mappings; an alias counts as one
  // node.
  std::size_t max_nodes = std::numeric_limits<std::size_t>::max();
};

// Returns all documents of a stream without the empty ones. It accepts the same as kubectl:
// anchors, aliases and merge keys ("<<", where the order of members counts), and a text that is
// JSON is read as JSON. Errors (kParse) name line and column: syntax, a member written twice, a
// quote or colon missing at the end, numbers JSON does not have, nesting beyond 200, texts above 16
// MiB or with more than 1,000,000 brackets, braces and commas, and anchors, aliases, merge keys and
// tags that copy more than 1,000,000 nodes in all documents together.
Result<std::vector<Json>> parse_yaml_documents(std::string_view text);
// Returns exactly one document; reading stops with an error at a second one. It also refuses a text
// beyond `limits`, or with more brackets, braces and commas than there may be nodes.
Result<Json> parse_yaml(std::string_view text, const YamlLimits& limits = {});
// Returns the number of brackets, braces and commas in a text, also of those within scalars.
std::size_t count_flow_marks(std::string_view text);
// Returns block style with sorted members. Strings are quoted if a YAML 1.1 reader would take them
// for something else.
std::string print_yaml(const Json& value);
// Returns the same for people: strings with hidden characters (visible_text.hh) are in double
// quotes and escaped, and have the same value.
std::string print_visible_yaml(const Json& value);

}  // namespace kube
