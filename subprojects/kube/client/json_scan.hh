// The parts of JSON text are found without decoding it. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json_bytes.hh"

namespace kube {

// Returns the text of the member `name` of the object whose text `object` is: "\"x\"", "{...}",
// "12". Names are compared in their spelled form, without resolving escapes. The result is nullopt
// if there is no such member or the text is not complete. Deeper faults are not seen, since
// decoding the part finds them.
std::optional<std::string_view> scan_member(std::string_view object, std::string_view name);
// Returns the member as a string without escapes; nullopt for anything else.
std::optional<std::string_view> scan_string(std::string_view object, std::string_view name);

// The identity says which object a text is, and in which version; "" for missing parts.
struct ScannedIdentity {
  std::string_view ns;
  std::string_view name;
  std::string_view version;  // metadata.resourceVersion
};
ScannedIdentity scan_identity(std::string_view object);

// This is one line of a watch: `{"type":"ADDED","object":{...}}`, see meta/v1's WatchEvent. nullopt
// for anything else.
struct ScannedEvent {
  std::string_view type;
  std::string_view object;  // in the usual order the line's end is taken for its end, unread
};
std::optional<ScannedEvent> scan_event(std::string_view line);

// Cuts a list document into its items while it arrives: `{"metadata":{...},"items":[{...},...]}`.
//
// Guarantees: holds no more than one item and the document without its items, of at most 1 MiB. The
// callback gets only the first bytes of an item above the limit. No parser accepts them, so the
// item counts as malformed and stops nothing else. Linear in the items; the text before them is
// read again with each piece.
class ListSplitter {
 public:
  using OnItem = std::function<void(std::string_view item)>;
  explicit ListSplitter(OnItem on_item, std::size_t max_item_bytes = 16U << 20);
  void feed(std::string_view piece);
  // Returns the document with an empty items array, once all pieces were fed. kParse: it ended
  // early; kTooLarge: it does not have the form of a list.
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
  std::string item_;        // the current item's bytes in earlier pieces
  bool has_items_ = false;  // the items have begun
  bool is_item_cut_ = false;
  bool is_malformed_ = false;
};

}  // namespace kube
