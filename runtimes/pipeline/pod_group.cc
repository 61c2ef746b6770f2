#include "runtimes/pipeline/pod_group.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtimes/pipeline/gang.hh"

namespace trainer::pipeline {

void mark_gang(Draft& draft, const gang::GangScheduler& scheduler, std::string_view source) {
  const std::vector<bool> members = gang_members(draft);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i])
      draft.set_metadata(i, scheduler.mark_map, scheduler.mark_key, draft.name(), source);
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

}  // namespace trainer::pipeline
