#include "kube/client/json_scan.hh"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/model/json_cursor.hh"

namespace kube {

namespace {

constexpr std::size_t kMaxEnvelope = 1U << 20;
constexpr std::size_t kCutItem = 1U << 10;

// Returns a string without escapes, without its quotation marks.
std::optional<std::string_view> plain_string(std::optional<std::string_view> value) {
  if (!value || value->size() < 2 || value->front() != '"') return std::nullopt;
  const std::string_view text = value->substr(1, value->size() - 2);
  if (text.find('\\') != std::string_view::npos) return std::nullopt;
  return text;
}

// Finds the identity in the metadata at the beginning of `text`. It reads no further than it must:
// the rest may be long.
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
      // Nothing follows the object, and it is most of the line: the line ends where the object
      // ends.
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

void ListSplitter::feed(std::string_view piece) {
  std::size_t at = 0;
  while (at < piece.size() && !is_malformed_) {
    if (where_ == Where::kEnvelope) {
      at = in_envelope(piece, at);
    } else if (where_ == Where::kItem) {
      at = in_item(piece, at, at);
    } else if (piece[at] == '{') {
      where_ = Where::kItem;
      item_end_ = ContainerEnd();
      at = in_item(piece, at, at + 1);
    } else if (piece[at] == ']') {
      where_ = Where::kEnvelope;
    } else if (piece[at] == ',' || is_json_space(piece[at])) {
      ++at;
    } else {
      is_malformed_ = true;
    }
  }
}

// Takes the bytes before the items, or all that follow them. Both functions return where they
// ended.
std::size_t ListSplitter::in_envelope(std::string_view piece, std::size_t from) {
  const std::size_t before = envelope_.size();
  envelope_.append(piece.substr(from));
  for (JsonCursor members(envelope_); !has_items_ && members.next();) {
    if (members.name() != "items" || members.rest().front() != '[') continue;
    envelope_.resize(envelope_.size() - members.rest().size() + 1);
    has_items_ = true;
    where_ = Where::kBetweenItems;
  }
  is_malformed_ = envelope_.size() > kMaxEnvelope;
  return from + envelope_.size() - before;
}

// The bytes before `unread` have been read: those of the item, or of its part in this piece.
std::size_t ListSplitter::in_item(std::string_view piece, std::size_t from, std::size_t unread) {
  if (const auto length = item_end_.take(piece.substr(unread))) {
    finish_item(piece.substr(from, unread + *length - from));
    return unread + *length;
  }
  keep(piece.substr(from));
  return piece.size();
}

void ListSplitter::finish_item(std::string_view rest) {
  where_ = Where::kBetweenItems;
  // Most items are whole in one piece and need no copy.
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
  const std::size_t begin = std::min(envelope_.find_first_of("{["), envelope_.size());
  const char* const end = envelope_.data() + envelope_.size();
  const bool is_open = begin < envelope_.size() && !find_value_end(envelope_.data() + begin, end);
  if (where_ != Where::kEnvelope || is_open || envelope_.empty()) {
    return fail(ErrorCode::kParse, "the list breaks off before its end");
  }
  return envelope_;
}

}  // namespace kube
