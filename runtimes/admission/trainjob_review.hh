// validate_trainjob() runs in steps: the JobSet of a long runtime takes long to build and to check,
// and a thread can do other work between two of them. Pure.
#pragma once

#include <optional>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

class TrainJobReview {
 public:
  // All parameters outlive the review.
  TrainJobReview(const AdmissionRequest& request, const AdmissionLookups& lookups,
                 const PipelineOptions& options, const jobset::Gates& gates)
      : request_(request), lookups_(lookups), options_(options), gates_(gates) {}
  // Takes a step. Returns false if it was the last one, and answer() is complete.
  bool step();
  const AdmissionAnswer& answer() const { return answer_; }

 private:
  enum class Step { kRules, kBuild, kJobSet, kChildren, kOthers };
  // Returns true if the request creates a job and is allowed: then there may be warnings.
  bool check_rules();
  void build_jobset();
  void check_jobset();
  void check_children();

  const AdmissionRequest& request_;
  const AdmissionLookups& lookups_;
  const PipelineOptions& options_;
  const jobset::Gates& gates_;
  Step next_ = Step::kRules;
  AdmissionAnswer answer_;
  // This is set for a job that may be created.
  std::optional<TrainJob> job_;
  std::optional<Runtime> runtime_;
  std::optional<JobSet> jobset_;
};

}  // namespace trainer
