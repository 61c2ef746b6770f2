// What the stores keep of objects that are decoded on use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/packed_text.hh"

namespace trainer {

// An object as minified bytes, a tenth of what its Json takes; or, for as long as it is fresh, as
// the Json that it was read from, because the loops are about to look at it.
// Concurrency: one thread while it is fresh; after that as a constant.
class StoredBody {
 public:
  StoredBody() = default;
  explicit StoredBody(kube::PackedText text) : text_(std::move(text)) {}
  static StoredBody fresh(kube::Json object);

  // The object; null when it cannot be parsed (it could when it was stored).
  std::shared_ptr<const kube::Json> object() const;
  kube::PackedText text() const;
  // Of the text, in bytes; an estimate where it is fresh.
  std::size_t size() const { return fresh_ ? fresh_size_ : text_.size(); }
  bool is_fresh() const { return fresh_ != nullptr; }
  // Keeps the text from now on.
  void settle();

 private:
  std::shared_ptr<const kube::Json> fresh_;
  std::size_t fresh_size_ = 0;
  kube::PackedText text_;
};

struct StoredObject {
  // Larger ones are never fresh: they would take too much memory.
  static constexpr std::size_t kLargestFresh = 8U << 10;

  kube::ObjectKey object_key;
  std::string uid;
  std::string resource_version;
  std::string controller_uid;                 // of its controller owner, "" without
  std::string controller_kind;                // likewise
  std::optional<std::uint64_t> owned_fields;  // of a JobSet: see owned_template_fields()
  // The object, without managedFields and last-applied; "" where the store does not keep it.
  StoredBody body;

  const kube::ObjectKey& key() const { return object_key; }
};

// The objects that were stored last, which are kept as they were read.
// Concurrency: one thread.
class FreshObjects {
 public:
  static constexpr std::size_t kMost = 128;

  // Takes part in `stored` until kMost others have come.
  void add(std::shared_ptr<StoredObject> stored);

 private:
  std::array<std::shared_ptr<StoredObject>, kMost> ring_;
  std::size_t next_ = 0;
};

// `resource` names the kind, which items of a list do not carry. `packer` packs what is at rest,
// and the rest is fresh; without one the text is kept as it is. nullptr: not an object with a name.
std::shared_ptr<StoredObject> project_stored(std::string_view text, const kube::Resource& resource,
                                             kube::TextPacker* packer = nullptr);
std::shared_ptr<StoredObject> project_stored(kube::Json object, const kube::Resource& resource,
                                             kube::TextPacker* packer = nullptr);
// The same without its text: who owns it, and which version it is.
std::shared_ptr<StoredObject> project_owner(const kube::Json& object);
std::shared_ptr<StoredObject> project_owner(std::string_view text);

}  // namespace trainer
