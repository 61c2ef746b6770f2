// Finding the parts of JSON text without decoding it. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json_bytes.hh"

namespace kube {

// The text of the member `name` of the object that `object` is the text of: "\"x\"", "{...}", "12".
// Names are compared as they are spelled, without resolving escapes. nullopt where there is no such
// member or the text breaks off; deeper faults pass unseen, since decoding the part finds
// them.
std::optional<std::string_view> scan_member(std::string_view object, std::string_view name);
// The member as a string without escapes; nullopt for anything else.
std::optional<std::string_view> scan_string(std::string_view object, std::string_view name);

// Which object a text is, and in which version; "" for what is missing.
struct ScannedIdentity {
  std::string_view ns;
  std::string_view name;
  std::string_view version;  // metadata.resourceVersion
};
ScannedIdentity scan_identity(std::string_view object);

// One line of a watch: `{"type":"ADDED","object":{...}}`, see meta/v1's WatchEvent. nullopt for
// anything else.
struct ScannedEvent {
  std::string_view type;
  std::string_view object;  // in the usual order its end is taken for the line's, unseen
};
std::optional<ScannedEvent> scan_event(std::string_view line);

// Cuts a list document into its items while it arrives: `{"metadata":{...},"items":[{...},...]}`.
//
// Guarantees: holds no more than one item and the document without its items, of at most 1 MiB; an
// item above the limit is passed to the callback as its first bytes only, which no parser accepts,
// so that it counts as malformed and stops nothing else. Linear in the items; what is before them
// is read again with each piece.
class ListSplitter {
 public:
  using OnItem = std::function<void(std::string_view item)>;
  explicit ListSplitter(OnItem on_item, std::size_t max_item_bytes = 16U << 20);
  void feed(std::string_view piece);
  // The document with an empty items array, once all pieces were fed. kParse: it ended early;
  // kTooLarge: it is not what a list looks like.
  Result<std::string> envelope() const;

 private:
  std::size_t in_envelope(std::string_view piece, std::size_t from);
  std::size_t in_item(std::string_view piece, std::size_t from, std::size_t unread);
  void finish_item(std::string_view rest);
  void keep(std::string_view part);

  enum class Where { kEnvelope, kBetweenItems, kItem };
  OnItem on_item_;
  std::size_t max_item_bytes_;
  Where where_ = Where::kEnvelope;
  ContainerEnd item_end_;
  std::string envelope_;
  std::string item_;        // what earlier pieces held of the current item
  bool has_items_ = false;  // they have begun
  bool is_item_cut_ = false;
  bool is_malformed_ = false;
};

}  // namespace kube
