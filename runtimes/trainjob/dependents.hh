// This file decides which dependent objects of a TrainJob are written now. Pure.
#pragma once

#include <optional>

#include "runtimes/trainjob/children.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// Returns whether an object is gone that only a build makes again. Those of
// Plugin::refresh_dependents() do not count.
bool is_dependent_missing(const TrainJobObserved& observed, const PipelineOptions& options);

// Adds the write of `dependent` to `plan`, or the need to read it before. Returns why the job
// cannot have it.
std::optional<Blocked> plan_dependent(const TrainJobObserved& observed,
                                      const DependentObject& dependent, TrainJobPlan& plan);

// Adds the writes of Plugin::refresh_dependents(), while pods run.
void refresh_dependents(const TrainJobObserved& observed, const PipelineOptions& options,
                        TrainJobPlan& plan);

}  // namespace trainer
