// This file finds the first failure of a TrainJob: which pod, and how (docs/decisions/0001). Pure.
#pragma once

#include <optional>
#include <vector>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

// Returns the failure to keep. It is that of the newest attempt with a failure, of the pod whose
// container ended first. The recorded one stays unless there is an earlier failure of the same
// attempt, or one of a later attempt: pods are deleted, and the record must not be lost.
std::optional<FirstFailure> first_failure(const std::optional<FirstFailure>& recorded,
                                          const JobSet& jobset,
                                          const std::vector<const PodView*>& pods);

}  // namespace trainer
