// This file decides how long a replicated job waits for others (JobSet,
// pkg/controllers/depends_on.go).
#include <algorithm>

#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

bool are_dependencies_met(JobSetContext& context, const ReplicatedJobState& rjob) {
  const auto& dependencies = rjob.spec->dependsOn;
  return std::all_of(dependencies.begin(), dependencies.end(), [&](const DependsOn& dependency) {
    const ReplicatedJobState* const other = context.find_rjob(dependency.name);
    // A replicated job waits only for earlier ones: admission refuses others. If admission was
    // bypassed, a cycle must not count as satisfied.
    if (!other || other >= &rjob) return false;
    if (dependency.status == "Complete") return other->counters.succeeded == other->replicas;
    return dependency.status == "Ready" && other->has_started();
  });
}

}  // namespace trainer::jobset
