// Admission has cached objects. The control loops set them, and the serving thread reads them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "kube/manager/stored_object.hh"
#include "kube/model/meta.hh"

namespace trainer {

// These are the objects of those collections that webhooks read. A change costs that of one object,
// however many there are. Concurrency: any thread; the objects are immutable.
class AdmissionState {
 public:
  using Object = std::shared_ptr<const kube::StoredObject>;

  // `object` is nullptr if it was deleted.
  void set(const kube::Resource& resource, const kube::ObjectKey& key, Object object) {
    const std::lock_guard lock(mutex_);
    auto& of_kind = objects_[resource.kind];
    if (object) {
      std::swap(of_kind[key], object);  // the former one is freed without the lock
    } else if (const auto at = of_kind.find(key); at != of_kind.end()) {
      object = std::move(at->second);
      of_kind.erase(at);
    }
  }
  // Returns nullptr if it is not cached; it may exist nevertheless.
  Object find(const kube::Resource& resource, const kube::ObjectKey& key) const {
    const std::lock_guard lock(mutex_);
    const auto of_kind = objects_.find(resource.kind);
    if (of_kind == objects_.end()) return nullptr;
    const auto at = of_kind->second.find(key);
    return at == of_kind->second.end() ? nullptr : at->second;
  }

 private:
  using Objects = std::unordered_map<kube::ObjectKey, Object, kube::ObjectKeyHash>;
  mutable std::mutex mutex_;
  std::map<std::string, Objects> objects_;  // by kind
};

}  // namespace trainer
