// What a cache keeps of objects that are decoded on use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/compressed_text.hh"
#include "kube/model/json.hh"
#include "kube/model/json_filter.hh"
#include "kube/model/meta.hh"

namespace kube {

struct StoredObject {
  ObjectKey object_key;
  std::string uid;
  std::string resource_version;
  std::string controller_uid;   // of its controller owner, "" without
  std::string controller_kind;  // likewise
  // What the collection's Digest computed, if it has one.
  std::optional<std::uint64_t> digest;
  // The text of the object, without managedFields and last-applied: a tenth of what its Json takes.
  // "" where the cache does not keep it.
  CompressedText body;

  const ObjectKey& key() const { return object_key; }
  // The object that the text is of; null where that cannot be parsed.
  std::shared_ptr<const Json> object() const;
};

// A number computed from each version before managedFields are cut out.
struct Digest {
  JsonFilter of_metadata;  // which of its members are read
  std::optional<std::uint64_t> (*compute)(const Json& object) = nullptr;
};

// A transform of ObjectCache<StoredObject>. What is known of an object comes from its head: of its
// body only the end is searched, and the depth is checked; what else is wrong within shows where it
// is decoded. The text of an object that is idle (suspended, or finished) is compressed: one that
// changes is read many times a second, and compressing it would not pay.
class StoredObjectTransform {
 public:
  // `resource` gives kind and apiVersion to texts that lack them, as the items of a list do.
  explicit StoredObjectTransform(Resource resource, std::optional<Digest> digest = {});
  // nullptr: not an object with a name.
  std::shared_ptr<StoredObject> operator()(std::string_view text);

 private:
  Resource resource_;
  std::optional<Digest> digest_;
  JsonFilter head_;
  std::shared_ptr<TextCompressor> compressor_;
};

// The same without its text: who owns it, and which version it is.
std::shared_ptr<StoredObject> transform_owner(std::string_view text);

}  // namespace kube
