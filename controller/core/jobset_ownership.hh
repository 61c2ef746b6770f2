// Whose JobSets we turn into Jobs: the modes Own, Share, Off and Auto (docs/decisions/0002).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/config/options.hh"

namespace trainer {

// spec.managedBy of JobSets that the upstream controller leaves to us, and its own name, which
// counts as unset.
inline constexpr std::string_view kManagedByTrainer = "trainer.kubeflow.org/jobset-expander";
inline constexpr std::string_view kManagedByJobSet = "jobset.sigs.k8s.io/jobset-controller";

// The configured mode and what is known of the upstream controller. Value type.
class JobSetOwnership {
 public:
  explicit JobSetOwnership(JobSetControllerMode mode) : mode_(mode) {}
  // Auto follows this: does anybody hold upstream's Lease?
  void set_upstream_present(bool is_present) { is_upstream_present_ = is_present; }
  // Own, Share or Off; never Auto.
  JobSetControllerMode mode() const;
  JobSetControllerMode configured() const { return mode_; }
  // Whether a JobSet with this spec.managedBy is ours to expand now. A stamped JobSet stays ours in
  // every mode but Off, since nobody else will take it.
  bool owns(const std::optional<std::string>& managed_by) const;
  // What a new JobSet of a TrainJob is stamped with: in Share our name, so that the upstream
  // controller never starts on it.
  std::string_view stamp() const;

 private:
  JobSetControllerMode mode_;
  bool is_upstream_present_ = false;
};

}  // namespace trainer
