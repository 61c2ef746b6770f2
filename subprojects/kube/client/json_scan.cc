#include "kube/client/json_scan.hh"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/model/json_bytes.hh"
#include "kube/model/json_cursor.hh"

namespace kube {

namespace {

constexpr std::size_t kMaxEnvelope = 1U << 20;
constexpr std::size_t kCutItem = 1U << 10;

// A string without escapes, without its quotation marks.
std::optional<std::string_view> plain_string(std::optional<std::string_view> value) {
  if (!value || value->size() < 2 || value->front() != '"') return std::nullopt;
  const std::string_view text = value->substr(1, value->size() - 2);
  if (text.find('\\') != std::string_view::npos) return std::nullopt;
  return text;
}

// Of the metadata that `text` begins with. Looks no further than it must: what comes behind may be
// long.
ScannedIdentity identity_in(std::string_view text) {
  ScannedIdentity found;
  const std::pair<std::string_view, std::string_view*> desired[] = {
      {"namespace", &found.ns}, {"name", &found.name}, {"resourceVersion", &found.version}};
  std::size_t missing = std::size(desired);
  for (JsonCursor metadata(text); missing > 0 && metadata.next();) {
    for (const auto& [name, target] : desired) {
      if (metadata.name() != name) continue;
      *target = plain_string(metadata.value()).value_or(std::string_view());
      --missing;
    }
  }
  return found;
}

}  // namespace

std::optional<std::string_view> scan_member(std::string_view object, std::string_view name) {
  for (JsonCursor members(object); members.next();) {
    if (members.name() == name) return members.value();
  }
  return std::nullopt;
}

std::optional<std::string_view> scan_string(std::string_view object, std::string_view name) {
  return plain_string(scan_member(object, name));
}

ScannedIdentity scan_identity(std::string_view object) {
  for (JsonCursor members(object); members.next();) {
    if (members.name() == "metadata") return identity_in(members.rest());
  }
  return {};
}

std::optional<ScannedEvent> scan_event(std::string_view line) {
  while (!line.empty() && is_json_space(line.back())) line.remove_suffix(1);
  if (!line.ends_with('}')) return std::nullopt;
  ScannedEvent event;
  for (JsonCursor members(line); members.next();) {
    if (members.name() == "type") {
      event.type = plain_string(members.value()).value_or(std::string_view());
    } else if (members.name() == "object" && !event.type.empty()) {
      // Nothing follows it, and it is most of the line: that ends as both end.
      event.object = members.rest();
      event.object.remove_suffix(1);
      return event;
    } else if (members.name() == "object") {
      event.object = members.value().value_or(std::string_view());
    }
  }
  if (event.type.empty() || event.object.empty()) return std::nullopt;
  return event;
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
