// The stacks of a stall are kept in a ConfigMap of the job, for `trainer why --stacks`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/named_objects.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

inline constexpr std::string_view kStacksSuffix = "-stacks";       // after the job's name
inline constexpr std::string_view kStacksFile = "stacks.json.gz";  // the key in the ConfigMap

kube::NamedObject stacks_object(const TrainJob& job);
// Returns whether the object of this name is the job's stacks_object().
bool is_stacks(const TrainJob& job, const kube::Resource& resource, std::string_view name);

// Plans the write of stacks that no plan of this process has written. They are written once: if
// that fails, the job goes on without them. An object of another owner is left alone.
void plan_stacks(const TrainJobObserved& observed, const TrainJobStatus& after, TrainJobPlan& plan);

}  // namespace trainer
