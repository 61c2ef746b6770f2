// What admission knows of the cluster, handed from the control loops' thread to the serving thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "controller/core/stored_object.hh"
#include "kube/model/meta.hh"

namespace trainer {

// Immutable once published.
struct AdmissionView {
  using Runtimes = std::map<kube::ObjectKey, std::shared_ptr<const StoredObject>>;
  Runtimes training_runtimes;
  Runtimes cluster_runtimes;
};

// Concurrency: any thread. Readers keep the view they got, whatever is published meanwhile.
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

  // While the upstream JobSet controller is in charge, JobSets and their pods are let through
  // unchanged: its own webhooks judge them.
  bool validates_jobsets() const { return validates_jobsets_; }
  void set_validates_jobsets(bool value) { validates_jobsets_ = value; }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const AdmissionView> view_;
  std::atomic<bool> validates_jobsets_{true};
};

}  // namespace trainer
