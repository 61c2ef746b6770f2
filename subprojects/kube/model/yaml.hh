// YAML to Json with the typing of sigs.k8s.io/yaml (YAML 1.1 booleans, plain scalars typed, quoted
// ones strings). The only place that knows yaml-cpp.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

// Limits of one text. For texts that other users wrote they are lower than for files of the
// program's own user, since the parser needs a microsecond or more for each node.
struct YamlLimits {
  std::size_t max_bytes = 16U << 20;
  // Counts scalars (also the names of members), lists and mappings; an alias counts as one node.
  std::size_t max_nodes = std::numeric_limits<std::size_t>::max();
};

// All documents of a stream, empty ones left out. Takes what kubectl takes: anchors, aliases and
// merge keys ("<<", where the order of members counts), and a text that is JSON is read as JSON.
// Errors (kParse) name line and column: syntax, a member written twice, a quote or colon missing at
// the end, numbers JSON does not have, nesting beyond 200, texts above 16 MiB or with more than
// 1,000,000 brackets, braces and commas, and anchors, aliases, merge keys and tags that copy more
// than 1,000,000 nodes in all documents together.
Result<std::vector<Json>> parse_yaml_documents(std::string_view text);
// Exactly one document; reading stops where a second one begins, with an error. Also refuses a text
// beyond `limits`, or with more brackets, braces and commas than there may be nodes.
Result<Json> parse_yaml(std::string_view text, const YamlLimits& limits = {});
// The brackets, braces and commas of a text, also those within scalars.
std::size_t count_flow_marks(std::string_view text);
// Block style, members sorted, strings quoted where a YAML 1.1 reader would take them for something
// else.
std::string print_yaml(const Json& value);
// The same for people: what is hidden (visible_text.hh) is in double quotes and escaped, and reads
// as the same value.
std::string print_visible_yaml(const Json& value);

}  // namespace kube
