// The PodGroups of different schedulers have this in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Marks the pods of the gang.
void mark_gang(Draft& draft, const gang::GangScheduler& scheduler, std::string_view source);

// Makes a PodGroup with the job's name and the size of the gang. The rest of its spec follows from
// `request`. Call it after finalize_pod_sets().
DependentObject make_pod_group(const Draft& draft, const gang::GangScheduler& scheduler,
                               gang::GroupRequest request);

// Returns the classes that must exist for the jobs of a runtime with such a group.
std::vector<std::string> named_priority_classes(const Runtime& runtime);

}  // namespace trainer::pipeline
