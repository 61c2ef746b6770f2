#include "kube/client/json_scan.hh"

#include <algorithm>
#include <utility>

#include "kube/model/json_bytes.hh"

namespace kube {

namespace {

constexpr std::size_t kMaxEnvelope = 1U << 20;
constexpr std::size_t kCutItem = 1U << 10;
constexpr auto kNone = std::string_view::npos;

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_json_space(text[at])) ++at;
  return at;
}

std::size_t position(std::string_view text, const char* found) {
  return found != nullptr ? static_cast<std::size_t>(found - text.data()) : kNone;
}

// The position after the string that starts at `at`, or kNone.
std::size_t skip_string(std::string_view text, std::size_t at) {
  return position(text, find_string_end(text.data() + at + 1, text.data() + text.size()));
}

// The position after the value that starts at `at`, or kNone.
std::size_t skip_value(std::string_view text, std::size_t at) {
  return position(text, find_value_end(text.data() + at, text.data() + text.size()));
}

}  // namespace

std::optional<std::string_view> scan_member(std::string_view object, std::string_view name) {
  std::size_t at = skip_space(object, 0);
  if (at >= object.size() || object[at] != '{') return std::nullopt;
  at = skip_space(object, at + 1);
  while (at < object.size() && object[at] == '"') {
    const std::size_t key_end = skip_string(object, at);
    if (key_end == kNone) return std::nullopt;
    const std::string_view key = object.substr(at + 1, key_end - at - 2);
    at = skip_space(object, key_end);
    if (at >= object.size() || object[at] != ':') return std::nullopt;
    at = skip_space(object, at + 1);
    const std::size_t end = skip_value(object, at);
    if (end == kNone) return std::nullopt;
    if (key == name) return object.substr(at, end - at);
    at = skip_space(object, end);
    if (at >= object.size() || object[at] != ',') return std::nullopt;
    at = skip_space(object, at + 1);
  }
  return std::nullopt;
}

std::optional<std::string_view> scan_string(std::string_view object, std::string_view name) {
  const auto value = scan_member(object, name);
  if (!value || value->size() < 2 || value->front() != '"') return std::nullopt;
  const std::string_view text = value->substr(1, value->size() - 2);
  if (text.find('\\') != kNone) return std::nullopt;
  return text;
}

std::string_view scan_version(std::string_view object) {
  const auto metadata = scan_member(object, "metadata");
  if (!metadata) return {};
  return scan_string(*metadata, "resourceVersion").value_or(std::string_view());
}

ListSplitter::ListSplitter(OnItem on_item, std::size_t max_item_bytes)
    : on_item_(std::move(on_item)), max_item_bytes_(max_item_bytes) {}

void ListSplitter::Nesting::step(char c) {
  if (is_in_string) {
    if (is_escaped) {
      is_escaped = false;
    } else if (c == '\\') {
      is_escaped = true;
    } else if (c == '"') {
      is_in_string = false;
    }
    return;
  }
  if (c == '"') is_in_string = true;
  if (c == '{' || c == '[') ++depth;
  if (c == '}' || c == ']') --depth;
}

void ListSplitter::feed(std::string_view piece) {
  std::size_t at = 0;
  while (at < piece.size() && !is_malformed_) {
    if (where_ == Where::kEnvelope)
      in_envelope(piece[at++]);
    else if (where_ == Where::kItem)
      at = in_item(piece, at);
    else if (piece[at] == '{')
      where_ = Where::kItem;
    else
      between_items(piece[at++]);
  }
}

void ListSplitter::in_envelope(char c) {
  if (envelope_.size() == kMaxEnvelope) {
    is_malformed_ = true;
    return;
  }
  envelope_ += c;
  const bool was_in_string = outer_.is_in_string;
  outer_.step(c);
  if (!was_in_string && outer_.is_in_string) string_start_ = envelope_.size();
  if (was_in_string && !outer_.is_in_string) {
    const auto text = std::string_view(envelope_).substr(string_start_);
    is_items_key_ = outer_.depth == 1 && text == "items\"";
  }
  if (was_in_string || outer_.is_in_string) return;
  if (c == ',') is_items_key_ = false;
  if (c == '[' && outer_.depth == 2 && is_items_key_) where_ = Where::kBetweenItems;
}

void ListSplitter::between_items(char c) {
  if (c == ',' || is_json_space(c)) return;
  if (c != ']') {
    is_malformed_ = true;
    return;
  }
  where_ = Where::kEnvelope;
  in_envelope(c);
}

std::size_t ListSplitter::in_item(std::string_view piece, std::size_t from) {
  for (std::size_t at = from; at < piece.size(); ++at) {
    inner_.step(piece[at]);
    if (inner_.depth > 0) continue;
    finish_item(piece.substr(from, at + 1 - from));
    return at + 1;
  }
  keep(piece.substr(from));
  return piece.size();
}

void ListSplitter::finish_item(std::string_view rest) {
  where_ = Where::kBetweenItems;
  inner_ = Nesting();
  // Most items lie whole in one piece and need no copy.
  if (item_.empty() && rest.size() <= max_item_bytes_) {
    on_item_(rest);
    return;
  }
  keep(rest);
  const std::string whole = std::exchange(item_, std::string());
  is_item_cut_ = false;
  on_item_(whole);
}

void ListSplitter::keep(std::string_view part) {
  if (is_item_cut_) return;
  item_.append(part);
  if (item_.size() <= max_item_bytes_) return;
  is_item_cut_ = true;
  item_.resize(std::min(kCutItem, max_item_bytes_));
  item_.shrink_to_fit();
}

Result<std::string> ListSplitter::envelope() const {
  if (is_malformed_) return fail(ErrorCode::kParse, "the answer is no list of objects");
  if (where_ != Where::kEnvelope || outer_.depth != 0 || envelope_.empty()) {
    return fail(ErrorCode::kParse, "the list breaks off before its end");
  }
  return envelope_;
}

}  // namespace kube
