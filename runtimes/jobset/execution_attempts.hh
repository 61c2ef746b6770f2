// Counts the runs of a JobSet: restarts, and resumptions after a suspension, such as that of a
// queue which had given the machines to another job (JobSet, KEP-1282). A JobSet asks for it: a pod
// template of it has the annotation jobset.sigs.k8s.io/execution-attempt, whose value is replaced
// in the pods. Then:
//
// - status.executionAttempts is 0 in the first run and one more in each later one. It is absent
//   before the first run.
// - Jobs, and pods of the template that asks, have the number in this annotation.
//
// With JobSet's own CRD the API server drops the field: then pods have the number of restarts.
// Pure.
#pragma once

#include <cstdint>

#include "api/jobset.hh"

namespace trainer::jobset {

bool counts_attempts(const ReplicatedJob& replicated_job);
bool counts_attempts(const JobSet& jobset);

// Returns the number of the current run; that of the next one if none has begun.
std::int32_t current_attempt(const JobSetStatus& status);

}  // namespace trainer::jobset
