// The controllers of TrainJobs, JobSets and placement share this state.
#pragma once

#include <memory>

#include "controller/kinds/jobset/decoded_jobset.hh"
#include "controller/kinds/jobset/jobset_ownership.hh"
#include "kube/manager/decoded_objects.hh"

namespace trainer {

struct JobSetState {
  explicit JobSetState(JobSetControllerMode mode) : ownership(mode) {}
  JobSetOwnership ownership;
  std::shared_ptr<kube::DecodedObjects<DecodedJobSet>> decoded =
      std::make_shared<kube::DecodedObjects<DecodedJobSet>>(decode_jobset);
};

}  // namespace trainer
