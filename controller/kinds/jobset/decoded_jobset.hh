// A JobSet as both control loops look at it.
#pragma once

#include <memory>

#include "api/jobset.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

struct DecodedJobSet {
  std::shared_ptr<const kube::Json> object;  // as it stands
  // With the defaults that it lacks where it was made while no webhook was served.
  tl::expected<JobSet, kube::FieldErrors> jobset;
};

DecodedJobSet decode_jobset(std::shared_ptr<const kube::Json> object);

}  // namespace trainer
