// This file decides which JobSets this controller manages: the modes Own, Share, Off and Auto
// (docs/decisions).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/config/options.hh"
#include "controller/kinds/common/upstream_lease.hh"

namespace trainer {

// spec.managedBy of JobSets that this controller manages and the upstream controller ignores.
inline constexpr std::string_view kManagedByTrainer = "trainer.kubeflow.org/jobset-expander";

inline constexpr UpstreamController kUpstreamJobSetController{
    "JobSet controller", "6d4f6a47.jobset.x-k8s.io", "jobset-system",
    "jobset-validating-webhook-configuration", "expander.upstreamNamespaces"};

// This holds the configured mode, whether a JobSet controller runs here, and whether upstream's
// runs. Concurrency: written on the control loops' thread; mode() may be called on any thread.
class JobSetOwnership {
 public:
  explicit JobSetOwnership(JobSetControllerMode mode) : mode_(mode) {}
  JobSetOwnership(const JobSetOwnership&) = delete;
  JobSetOwnership& operator=(const JobSetOwnership&) = delete;

  // `is_present` says whether a process holds upstream's Lease, which decides the mode if Auto is
  // configured. Calls the handlers and returns true if the mode has changed.
  bool set_upstream_present(bool is_present);
  void on_change(std::function<void()> handler) { handlers_.push_back(std::move(handler)); }
  // Returns Own, Share or Off; never Auto.
  JobSetControllerMode mode() const;
  JobSetControllerMode configured() const { return mode_; }
  // Returns whether this controller manages a JobSet with this spec.managedBy. It manages one with
  // its own name in every mode except Off, since no other controller does.
  bool owns(const std::optional<std::string>& managed_by) const;
  // Returns the spec.managedBy of a new JobSet of a TrainJob: in Share this controller's name, so
  // that the upstream controller ignores it.
  std::string_view managed_by() const;

 private:
  const JobSetControllerMode mode_;
  std::atomic<bool> is_upstream_present_{false};
  std::vector<std::function<void()>> handlers_;
};

}  // namespace trainer
