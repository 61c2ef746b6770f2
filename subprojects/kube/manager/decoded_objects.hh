// Objects that reconciles read often are decoded once for each version.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kube/manager/stored_object.hh"

namespace kube {

// T is the decoded type. The table has a fixed size, and a new entry replaces the one in its slot,
// so its memory is bounded for any number of objects. Large objects are not kept. Concurrency: one
// thread; results stay valid.
template <class T>
class DecodedObjects {
 public:
  using Decode = std::function<T(std::shared_ptr<const kube::Json> object)>;
  static constexpr std::size_t kUsualSlots = 128;
  explicit DecodedObjects(Decode decode, std::size_t slots = kUsualSlots)
      : decode_(std::move(decode)), wanted_slots_(slots) {}

  std::shared_ptr<const T> of(const std::shared_ptr<const StoredObject>& stored) {
    if (stored->body.size() > kLargestKept) return make(*stored);
    if (slots_.empty()) slots_.resize(wanted_slots_);
    Slot& slot = slots_[std::hash<std::string>()(stored->uid) % slots_.size()];
    if (slot.stored != stored) slot = {stored, make(*stored)};
    return slot.decoded;
  }

 private:
  static constexpr std::size_t kLargestKept = 8U << 10;  // bytes of text

  // Holding the stored object keeps its address unique: equal pointers mean one version.
  struct Slot {
    std::shared_ptr<const StoredObject> stored;
    std::shared_ptr<const T> decoded;
  };
  std::shared_ptr<const T> make(const StoredObject& stored) const {
    return std::make_shared<const T>(decode_(stored.object()));
  }

  Decode decode_;
  std::size_t wanted_slots_;
  std::vector<Slot> slots_;
};

}  // namespace kube
