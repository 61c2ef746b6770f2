#include "kube/model/json_filter.hh"

#include <algorithm>
#include <cstddef>

#include "kube/model/json_bytes.hh"
#include "kube/model/json_children.hh"
#include "kube/model/json_text.hh"

namespace kube {
namespace {

const JsonFilter kEverything;

// What is selected of the member of this name; null: nothing.
const JsonFilter* selection_of(std::string_view name, const JsonFilter& filter) {
  const bool is_only = filter.members == JsonFilter::Members::kInclude;
  for (const JsonFilter& listed : filter.below) {
    if (listed.name != name && !(is_only && listed.name == "*")) continue;
    return is_only || !listed.below.empty() ? &listed : nullptr;
  }
  return is_only ? nullptr : &kEverything;
}

// The same for a name as it is spelled in the text.
const JsonFilter* selection_of_spelled(std::string_view name, const JsonFilter& filter) {
  if (name.find('\\') == std::string_view::npos) return selection_of(name, filter);
  const auto decoded = parse_json("\"" + std::string(name) + "\"");
  return decoded ? selection_of(decoded->as_string(), filter) : &kEverything;
}

class Selector {
 public:
  explicit Selector(std::size_t room) { text_.reserve(room); }

  // Takes what is selected of the value that `rest` begins with. Its length there; nullopt where it
  // breaks off or has more than `levels` containers within each other.
  std::optional<std::size_t> take(std::string_view rest, const JsonFilter& filter, int levels) {
    if (!filter.below.empty() && rest.front() == '{') return take_object(rest, filter, levels);
    if (!filter.below.empty() && rest.front() == '[') return take_array(rest, filter, levels);
    return take_whole(rest, levels);
  }
  std::string text() && { return std::move(text_); }

 private:
  std::optional<std::size_t> take_object(std::string_view rest, const JsonFilter& filter,
                                         int levels) {
    if (levels < 1) return std::nullopt;
    text_ += '{';
    JsonChildren members(rest, levels - 1);
    while (members.next()) {
      const JsonFilter* const selected = selection_of_spelled(members.name(), filter);
      if (selected == nullptr) continue;
      if (text_.back() != '{') text_ += ',';
      text_.append(1, '"').append(members.name()).append("\":");
      const auto length = take(members.rest(), *selected, levels - 1);
      if (!length) return std::nullopt;
      members.pass(*length);
    }
    text_ += '}';
    return members.length();
  }

  std::optional<std::size_t> take_array(std::string_view rest, const JsonFilter& filter,
                                        int levels) {
    if (levels < 1) return std::nullopt;
    text_ += '[';
    JsonChildren items(rest, levels - 1);
    while (items.next()) {
      if (text_.back() != '[') text_ += ',';
      const bool is_array = items.rest().front() == '[';
      const auto length = take(items.rest(), is_array ? kEverything : filter, levels - 1);
      if (!length) return std::nullopt;
      items.pass(*length);
    }
    text_ += ']';
    return items.length();
  }

  std::optional<std::size_t> take_whole(std::string_view rest, int levels) {
    const char* const stop = find_value_end(rest.data(), rest.data() + rest.size(), levels);
    if (stop == nullptr || stop == rest.data()) return std::nullopt;
    const auto length = static_cast<std::size_t>(stop - rest.data());
    text_.append(rest.substr(0, length));
    return length;
  }

  std::string text_;
};

}  // namespace

std::optional<std::string> filter_json(std::string_view text, const JsonFilter& filter,
                                       int max_depth) {
  const auto is_space = [](char c) { return is_json_space(c); };
  text.remove_prefix(static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_space) -
                                              text.begin()));
  if (text.empty()) return std::nullopt;
  Selector selector(text.size());
  const auto length = selector.take(text, filter, max_depth);
  if (!length ||
      !std::all_of(text.begin() + static_cast<std::ptrdiff_t>(*length), text.end(), is_space)) {
    return std::nullopt;
  }
  return std::move(selector).text();
}

}  // namespace kube
