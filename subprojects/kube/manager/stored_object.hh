// Cached objects have this form, and are decoded when they are used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/compressed_text.hh"
#include "kube/model/json.hh"
#include "kube/model/json_cursor.hh"
#include "kube/model/meta.hh"

namespace kube {

struct StoredObject {
  ObjectKey object_key;
  std::string uid;
  std::string resource_version;
  std::string controller_uid;   // the uid of its controller owner, "" without
  std::string controller_kind;  // the kind of its controller owner, "" without
  // The collection's Fingerprint computed this number, if the collection has one.
  std::optional<std::uint64_t> fingerprint;
  // This is the text of the object, without managedFields and the last applied configuration. It
  // takes a tenth of the memory of its Json. It is "" if the cache does not keep it.
  CompressedText body;

  const ObjectKey& key() const { return object_key; }
  // Returns the parsed text; null if it cannot be parsed.
  std::shared_ptr<const Json> object() const;
};

// A Fingerprint computes a number from parts of metadata, before managedFields are removed from the
// text, so that two versions of an object can be compared by it.
struct Fingerprint {
  std::vector<JsonFilter> of_metadata;  // the members of metadata that `compute` reads
  std::optional<std::uint64_t> (*compute)(const Json& object) = nullptr;
};

// This is a transform of ObjectCache<StoredObject>. It parses only the head of an object. It finds
// the end of the body and checks its depth, so other errors in the body appear when it is decoded.
// The text of an idle object (suspended, or finished) is compressed. An active one is read many
// times a second, and decompressing it would cost too much, unless it is long: a user can have
// hundreds of long ones.
class StoredObjectTransform {
 public:
  // `resource` adds kind and apiVersion to texts that lack them, such as the items of a list.
  explicit StoredObjectTransform(Resource resource, std::optional<Fingerprint> fingerprint = {});
  // Returns nullptr if the text is not an object with a name.
  std::shared_ptr<StoredObject> operator()(std::string_view text);

 private:
  Resource resource_;
  std::optional<Fingerprint> fingerprint_;
  JsonFilter head_;
  std::shared_ptr<TextCompressor> compressor_;
};

// Returns the same without the text: only identity, owner and version.
std::shared_ptr<StoredObject> transform_owner(std::string_view text);

}  // namespace kube
