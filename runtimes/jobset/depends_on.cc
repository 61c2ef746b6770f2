// What a replicated job waits for: jobset-contract 3.4.
#include <algorithm>

#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {

bool are_dependencies_met(Pass& pass, const Wave& wave) {
  const auto& dependencies = wave.spec->dependsOn;
  return std::all_of(dependencies.begin(), dependencies.end(), [&](const DependsOn& dependency) {
    const Wave* const other = pass.find_wave(dependency.name);
    // Only earlier ones can be waited for: admission refuses the rest, and where it was bypassed a
    // cycle must not look satisfied.
    if (!other || other >= &wave) return false;
    if (dependency.status == "Complete") return other->counters.succeeded == other->replicas;
    return dependency.status == "Ready" && other->has_started();
  });
}

}  // namespace trainer::jobset
