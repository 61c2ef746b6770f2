// What the stores keep of objects that are decoded on use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/packed_text.hh"

namespace trainer {

// An object as minified bytes: a tenth of what its Json would take. Of those at rest, suspended or
// finished, a cluster may hold tens of thousands: they are packed, a hundredth.
struct StoredObject {
  kube::ObjectKey object_key;
  std::string uid;
  std::string resource_version;
  std::string controller_uid;                 // of its controller owner, "" without
  std::string controller_kind;                // likewise
  std::optional<std::uint64_t> owned_fields;  // of a JobSet: see owned_template_fields()
  // The object, without managedFields and last-applied; "" where the store does not keep it.
  kube::PackedText text;

  const kube::ObjectKey& key() const { return object_key; }
  // The object again; null when it cannot be parsed (it could when it was stored).
  kube::Json object() const;
};

// `resource` names the kind, which items of a list do not carry. `packer` packs what is at rest;
// without one the text is kept as it is. nullptr: not an object with a name.
std::shared_ptr<StoredObject> project_stored(std::string_view text, const kube::Resource& resource,
                                             kube::TextPacker* packer = nullptr);
std::shared_ptr<StoredObject> project_stored(kube::Json object, const kube::Resource& resource,
                                             kube::TextPacker* packer = nullptr);
// The same without its text: who owns it, and which version it is.
std::shared_ptr<StoredObject> project_owner(const kube::Json& object);
std::shared_ptr<StoredObject> project_owner(std::string_view text);

}  // namespace trainer
