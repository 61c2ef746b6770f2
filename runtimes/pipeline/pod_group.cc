#include "runtimes/pipeline/pod_group.hh"

#include <algorithm>

#include "runtimes/gang/pod_group.hh"
#include "runtimes/pipeline/gang.hh"

namespace trainer::pipeline {

DependentObject make_pod_group(const Draft& draft, const kube::Resource& resource) {
  const GangSize size = size_of_gang(draft, gang_members(draft));
  DependentObject group;
  group.resource = resource;
  group.object = kube::Json::object(
      {{"apiVersion", resource.api_version()},
       {"kind", resource.kind},
       {"metadata",
        kube::Json::object({{"name", draft.name()}, {"namespace", draft.job.metadata.ns}})},
       // A group without members is refused, also if its job has numNodes 0.
       {"spec", kube::Json::object({{"minMember", std::max<std::int64_t>(size.pods, 1)},
                                    {"minResources", gang::write_resources(size.requests)}})}});
  return group;
}

}  // namespace trainer::pipeline
