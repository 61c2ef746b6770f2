// Objects that the loops look at again and again while they move, decoded once a version.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "controller/core/stored_object.hh"

namespace trainer {

// T is what an object is decoded to. A table of fixed size in which a newcomer takes the place of
// whatever was in its way: bounded memory, whatever the number of objects. Large objects are not
// kept at all. Concurrency: one thread; what was handed out stays valid.
template <class T>
class DecodedObjects {
 public:
  using Decode = T (*)(std::shared_ptr<const kube::Json> object);
  explicit DecodedObjects(Decode decode) : decode_(decode) {}

  std::shared_ptr<const T> of(const std::shared_ptr<const StoredObject>& stored) {
    if (stored->body.size() > StoredObject::kLargestFresh) return make(*stored);
    if (slots_.empty()) slots_.resize(kSlots);
    Slot& slot = slots_[std::hash<std::string>()(stored->uid) % kSlots];
    if (slot.stored != stored) slot = {stored, make(*stored)};
    return slot.decoded;
  }

 private:
  static constexpr std::size_t kSlots = 128;

  // Holding what was decoded makes its address its identity.
  struct Slot {
    std::shared_ptr<const StoredObject> stored;
    std::shared_ptr<const T> decoded;
  };
  std::shared_ptr<const T> make(const StoredObject& stored) const {
    return std::make_shared<const T>(decode_(stored.body.object()));
  }

  Decode decode_;
  std::vector<Slot> slots_;
};

}  // namespace trainer
