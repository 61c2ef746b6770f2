// The cached form of objects that are decoded when they are used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
  // The text of the object, without managedFields and the last applied configuration. It takes a
  // tenth of the memory of its Json. "" where the cache does not keep it.
  CompressedText body;

  const ObjectKey& key() const { return object_key; }
  // The parsed text; null where it cannot be parsed.
  std::shared_ptr<const Json> object() const;
};

// A Fingerprint computes a number from parts of metadata, before managedFields are removed from the
// text, so that two versions of an object can be compared by it.
struct Fingerprint {
  JsonFilter of_metadata;  // the members of metadata that `compute` reads
  std::optional<std::uint64_t> (*compute)(const Json& object) = nullptr;
};

// A transform of ObjectCache<StoredObject>. It parses only the head of an object; of the body it
// finds the end and checks the depth, so other errors in the body appear when it is decoded. The
// text of an idle object (suspended, or finished) is compressed; an active one is read many times a
// second, and decompressing it would cost too much, unless it is a long one: a user can have
// hundreds of those.
class StoredObjectTransform {
 public:
  // `resource` gives kind and apiVersion to texts that lack them, as the items of a list do.
  explicit StoredObjectTransform(Resource resource, std::optional<Fingerprint> fingerprint = {});
  // nullptr where the text is not an object with a name.
  std::shared_ptr<StoredObject> operator()(std::string_view text);

 private:
  Resource resource_;
  std::optional<Fingerprint> fingerprint_;
  JsonFilter head_;
  std::shared_ptr<TextCompressor> compressor_;
};

// The same without the text: only identity, owner and version.
std::shared_ptr<StoredObject> transform_owner(std::string_view text);

}  // namespace kube
