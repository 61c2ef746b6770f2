// The controllers of TrainJobs and JobSets read a JobSet in this form.
#pragma once

#include <memory>

#include "api/jobset.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

struct DecodedJobSet {
  std::shared_ptr<const kube::Json> object;  // the stored form
  // The JobSet has its defaults, also if it was created while no webhook was served.
  tl::expected<JobSet, kube::FieldErrors> jobset;
};

DecodedJobSet decode_jobset(std::shared_ptr<const kube::Json> object);

}  // namespace trainer
