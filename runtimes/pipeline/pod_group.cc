#include "runtimes/pipeline/pod_group.hh"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtimes/jobset/job_template.hh"
#include "runtimes/pipeline/gang.hh"

namespace trainer::pipeline {
namespace {

// Upstream stops at the first class of such a name.
bool is_system_class(std::string_view name) {
  return name == "system-cluster-critical" || name == "system-node-critical";
}

}  // namespace

void mark_gang(Draft& draft, const gang::GangScheduler& scheduler, std::string_view source) {
  const std::vector<bool> members = gang_members(draft);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i])
      draft.set_entry(i, scheduler.mark_part, scheduler.mark_map, scheduler.mark_key, draft.name(),
                      source);
}

DependentObject make_pod_group(const Draft& draft, const gang::GangScheduler& scheduler,
                               gang::GroupRequest request) {
  GangSize size = size_of_gang(draft, gang_members(draft));
  // A group without members is refused, also if its job has numNodes 0.
  request.min_member = std::max<std::int64_t>(size.pods, 1);
  request.min_resources = std::move(size.requests);
  DependentObject group;
  group.resource = scheduler.pod_groups;
  group.object = kube::Json::object(
      {{"apiVersion", group.resource.api_version()},
       {"kind", group.resource.kind},
       {"metadata",
        kube::Json::object({{"name", draft.name()}, {"namespace", draft.job.metadata.ns}})},
       {"spec", scheduler.spec(request)}});
  return group;
}

std::vector<std::string> named_priority_classes(const Runtime& runtime) {
  std::vector<std::string> names;
  for (const ReplicatedJob& job : replicated_jobs_of(runtime)) {
    const std::string_view name = jobset::pod_spec_of(job).get_string("priorityClassName");
    if (is_system_class(name)) break;
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

}  // namespace trainer::pipeline
