// Which JobSets this controller manages: the modes Own, Share, Off and Auto of
// docs/decisions.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/config/options.hh"

namespace trainer {

// spec.managedBy of JobSets that the upstream controller leaves to this one, and upstream's own
// name, which counts as unset.
inline constexpr std::string_view kManagedByTrainer = "trainer.kubeflow.org/jobset-expander";
inline constexpr std::string_view kManagedByJobSet = "jobset.sigs.k8s.io/jobset-controller";

// The configured mode, whether a JobSet controller runs here, and whether upstream's runs.
// Concurrency: written on the control loops' thread, mode() from any.
class JobSetOwnership {
 public:
  explicit JobSetOwnership(JobSetControllerMode mode) : mode_(mode) {}
  JobSetOwnership(const JobSetOwnership&) = delete;
  JobSetOwnership& operator=(const JobSetOwnership&) = delete;

  // Auto follows this: does a process hold upstream's Lease? Answers whether the mode has changed;
  // then the handlers have been called.
  bool set_upstream_present(bool is_present);
  void on_change(std::function<void()> handler) { handlers_.push_back(std::move(handler)); }
  // Own, Share or Off; never Auto.
  JobSetControllerMode mode() const;
  JobSetControllerMode configured() const { return mode_; }
  // Whether a JobSet with this spec.managedBy is managed here. A stamped JobSet is in every mode
  // but Off, since no other controller takes it.
  bool owns(const std::optional<std::string>& managed_by) const;
  // What a new JobSet of a TrainJob is stamped with: in Share this controller's name, so that the
  // upstream controller never starts on it.
  std::string_view stamp() const;

 private:
  const JobSetControllerMode mode_;
  std::atomic<bool> is_upstream_present_{false};
  std::vector<std::function<void()>> handlers_;
};

}  // namespace trainer
