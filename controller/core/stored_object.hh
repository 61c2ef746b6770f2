// What the stores keep of objects that are decoded on use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/compressed_text.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

struct StoredObject {
  kube::ObjectKey object_key;
  std::string uid;
  std::string resource_version;
  std::string controller_uid;                 // of its controller owner, "" without
  std::string controller_kind;                // likewise
  std::optional<std::uint64_t> owned_fields;  // of a JobSet: see owned_template_fields()
  // The text of the object, without managedFields and last-applied: a tenth of what its Json takes.
  // "" where the store does not keep it.
  kube::CompressedText body;

  const kube::ObjectKey& key() const { return object_key; }
  // The object that the text is of; null where that cannot be parsed.
  std::shared_ptr<const kube::Json> object() const;
};

// What is known of an object without reading more than its head: of its body only the end is looked
// for, and how deep it is; what else is wrong within shows where it is read. `resource` names the
// kind, for texts that lack it. `packer` (may be null) packs what is at rest. nullptr: not an
// object with a name.
std::shared_ptr<StoredObject> transform_stored(std::string_view text,
                                               const kube::Resource& resource,
                                               kube::TextCompressor* compressor = nullptr);
// The same without its text: who owns it, and which version it is.
std::shared_ptr<StoredObject> transform_owner(std::string_view text);

}  // namespace trainer
