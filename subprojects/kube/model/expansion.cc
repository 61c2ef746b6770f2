#include "kube/model/expansion.hh"

#include <algorithm>

namespace kube {

std::optional<ExpansionReader::Part> ExpansionReader::next() {
  if (rest_.empty()) return std::nullopt;
  Part part;
  std::size_t length = 0;
  const bool is_open = rest_.starts_with("$(");
  const std::size_t end = is_open && has_ends_ ? rest_.find(')') : rest_.npos;
  if (end != rest_.npos) {
    part = {rest_.substr(2, end - 2), true};
    length = end + 1;
  } else if (rest_.starts_with("$$")) {
    part = {rest_.substr(0, 1)};
    length = 2;
  } else {
    if (is_open) has_ends_ = false;
    length = std::min(rest_.find('$', 1), rest_.size());
    part = {rest_.substr(0, length)};
  }
  rest_.remove_prefix(length);
  return part;
}

std::vector<std::string_view> references_in(std::string_view text) {
  std::vector<std::string_view> names;
  ExpansionReader reader(text);
  while (const auto part = reader.next())
    if (part->is_reference) names.push_back(part->text);
  return names;
}

}  // namespace kube
