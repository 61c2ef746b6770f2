// This plugin knows the KAI scheduler, whose pod grouper makes the gangs itself
// (NVIDIA/KAI-Scheduler, pkg/podgrouper/podgrouper/plugins/jobset). So it sets nothing, and warns.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtimes/pipeline/gang.hh"
#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

namespace {

class Kai final : public Plugin {
 public:
  std::string_view source() const override { return "plugin kai"; }
  bool is_active(const Draft& draft) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

bool is_scheduled_by_kai(const Draft& draft, std::size_t job) {
  return draft.pod_template(job).get("spec").get_string("schedulerName") == "kai-scheduler";
}

}  // namespace

bool Kai::is_active(const Draft& draft) const {
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i)
    if (is_scheduled_by_kai(draft, i)) return true;
  return false;
}

// If the jobs of a JobSet do not start in order, all its pods are one gang for KAI. It is never
// complete while some of its pods do not exist.
void Kai::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  if (draft.spec.startupPolicy && draft.spec.startupPolicy->startupPolicyOrder == "InOrder") return;
  const std::vector<bool> members = gang_members(draft);
  const auto other = std::find(members.begin(), members.end(), false);
  if (other == members.end()) return;
  warnings.push_back(fmt::format(
      "spec.runtimeRef: {} \"{}\" has pods of kai-scheduler, which takes the pods of all its jobs "
      "for one gang, and those of job {} start before or after the others: no pod of the job would "
      "be placed; use a runtime without this job, or another scheduler for gangs",
      draft.runtime.kind, draft.runtime.metadata.name,
      draft.pod_sets[static_cast<std::size_t>(other - members.begin())].name));
}

std::unique_ptr<const Plugin> make_kai() {
  return std::make_unique<Kai>();
}

}  // namespace trainer::pipeline
