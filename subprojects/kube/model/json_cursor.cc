#include "kube/model/json_cursor.hh"

#include <algorithm>

#include "kube/model/json_bytes.hh"
#include "kube/model/json_text.hh"

namespace kube {

JsonCursor::JsonCursor(std::string_view text, int levels)
    : begin_(text.data()), end_(begin_ + text.size()), at_(begin_), levels_(levels) {
  is_object_ = take('{');
  is_good_ = is_object_ || take('[');
}

bool JsonCursor::next() {
  if (!is_good_) return false;
  is_good_ = false;
  if (value_ != nullptr) {
    if (at_ == value_ && !value()) return false;
    if (!take(',')) {
      is_closed_ = take(is_object_ ? '}' : ']');
      return false;
    }
  } else if (take(is_object_ ? '}' : ']')) {
    is_closed_ = true;
    return false;
  }
  if (is_object_ && !take_name()) return false;
  skip_space();
  value_ = at_;
  is_good_ = at_ != end_;
  return is_good_;
}

std::optional<std::string_view> JsonCursor::value() {
  if (at_ == value_) {
    const char* const stop = find_value_end(value_, end_, levels_);
    if (stop == nullptr || stop == value_) return std::nullopt;
    at_ = stop;
  }
  return std::string_view(value_, static_cast<std::size_t>(at_ - value_));
}

std::optional<std::size_t> JsonCursor::length() const {
  if (!is_closed_) return std::nullopt;
  return static_cast<std::size_t>(at_ - begin_);
}

void JsonCursor::skip_space() {
  while (at_ != end_ && is_json_space(*at_)) ++at_;
}

bool JsonCursor::take(char c) {
  skip_space();
  if (at_ == end_ || *at_ != c) return false;
  ++at_;
  return true;
}

bool JsonCursor::take_name() {
  if (!take('"')) return false;
  const char* const name_end = find_string_end(at_, end_);
  if (name_end == nullptr) return false;
  name_ = {at_, static_cast<std::size_t>(name_end - at_ - 1)};
  at_ = name_end;
  return take(':');
}

namespace {

const JsonFilter kEverything;

// Returns the filter of the member of this name; null if nothing of it is kept.
const JsonFilter* member_filter(std::string_view name, const JsonFilter& filter) {
  const bool is_include = filter.members == JsonFilter::Members::kInclude;
  for (const JsonFilter& listed : filter.below) {
    if (listed.name != name && !(is_include && listed.name == "*")) continue;
    return is_include || !listed.below.empty() ? &listed : nullptr;
  }
  return is_include ? nullptr : &kEverything;
}

// Returns the same for a name as it is spelled in the text.
const JsonFilter* spelled_member_filter(std::string_view name, const JsonFilter& filter) {
  if (name.find('\\') == std::string_view::npos) return member_filter(name, filter);
  const auto decoded = parse_json("\"" + std::string(name) + "\"");
  return decoded ? member_filter(decoded->as_string(), filter) : &kEverything;
}

// Appends to `kept` what the filter keeps of the value at the beginning of `rest`. Returns its
// length in `rest`; nullopt if it is not complete or has more than `levels` containers within each
// other.
std::optional<std::size_t> append_kept(std::string& kept, std::string_view rest,
                                       const JsonFilter& filter, int levels) {
  const char opening = rest.front();
  const bool is_object = opening == '{';
  if (filter.below.empty() || (!is_object && opening != '[')) {
    const char* const stop = find_value_end(rest.data(), rest.data() + rest.size(), levels);
    if (stop == nullptr || stop == rest.data()) return std::nullopt;
    const auto length = static_cast<std::size_t>(stop - rest.data());
    kept.append(rest.substr(0, length));
    return length;
  }
  if (levels < 1) return std::nullopt;
  kept += opening;
  JsonCursor children(rest, levels - 1);
  while (children.next()) {
    const JsonFilter* below = &filter;
    if (is_object) below = spelled_member_filter(children.name(), filter);
    if (!is_object && children.rest().front() == '[') below = &kEverything;
    if (below == nullptr) continue;
    if (kept.back() != opening) kept += ',';
    if (is_object) kept.append(1, '"').append(children.name()).append("\":");
    const auto length = append_kept(kept, children.rest(), *below, levels - 1);
    if (!length) return std::nullopt;
    children.skip(*length);
  }
  kept += is_object ? '}' : ']';
  return children.length();
}

}  // namespace

std::optional<std::string> filter_json(std::string_view text, const JsonFilter& filter,
                                       int max_depth) {
  const auto is_space = [](char c) { return is_json_space(c); };
  text.remove_prefix(static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_space) -
                                              text.begin()));
  if (text.empty()) return std::nullopt;
  std::string kept;
  kept.reserve(text.size());
  const auto length = append_kept(kept, text, filter, max_depth);
  if (!length ||
      !std::all_of(text.begin() + static_cast<std::ptrdiff_t>(*length), text.end(), is_space)) {
    return std::nullopt;
  }
  return kept;
}

}  // namespace kube
