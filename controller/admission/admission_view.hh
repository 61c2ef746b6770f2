// Cached objects for admission. Published by the control loops, read by the serving thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kube/manager/stored_object.hh"
#include "kube/model/meta.hh"

namespace trainer {

// The objects of those collections that webhooks read. Immutable once published.
class AdmissionView {
 public:
  using Object = std::shared_ptr<const kube::StoredObject>;

  void add(const kube::Resource& resource, const kube::ObjectKey& key, Object object) {
    objects_[resource.kind].emplace(key, std::move(object));
  }
  // nullptr where the view does not have it; it may exist nevertheless.
  Object find(const kube::Resource& resource, const kube::ObjectKey& key) const {
    const auto of_kind = objects_.find(resource.kind);
    if (of_kind == objects_.end()) return nullptr;
    const auto at = of_kind->second.find(key);
    return at == of_kind->second.end() ? nullptr : at->second;
  }

 private:
  std::map<std::string, std::map<kube::ObjectKey, Object>> objects_;  // by kind
};

// Concurrency: any thread. Readers keep the view they got, also after the next one is published.
class AdmissionState {
 public:
  AdmissionState() : view_(std::make_shared<const AdmissionView>()) {}

  std::shared_ptr<const AdmissionView> view() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  void publish(std::shared_ptr<const AdmissionView> view) {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const AdmissionView> view_;
};

}  // namespace trainer
