// A JobSet as the controllers of TrainJobs and JobSets read it.
#pragma once

#include <memory>

#include "api/jobset.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

struct DecodedJobSet {
  std::shared_ptr<const kube::Json> object;  // the stored form
  // With the defaults that it lacks if it was created while no webhook was served.
  tl::expected<JobSet, kube::FieldErrors> jobset;
};

DecodedJobSet decode_jobset(std::shared_ptr<const kube::Json> object);

}  // namespace trainer
