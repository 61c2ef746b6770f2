// A gang scheduler is one value, in a file of its own. Jobs of all kinds make their PodGroups and
// mark their pods by it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"

namespace trainer::gang {

// A job asks for this, whichever scheduler it has. A scheduler leaves out what it does not know,
// and members without a value: 0 members, no resources, no queue, "" as priority class.
struct GroupRequest {
  std::int64_t min_member = 0;
  std::optional<kube::ResourceList> min_resources;  // min_member pods need so much together
  std::optional<std::string> queue;
  std::string priority_class;
  // Pods that have a place wait so long for the others.
  std::optional<std::int64_t> timeout_seconds;
};

// Returns minMember and minResources, the amounts in canonical form.
kube::Json size_members(const GroupRequest& request);

struct GangScheduler {
  kube::Resource pod_groups;
  // The schedulerName of its pods. It is empty if each installation chooses one.
  std::string_view scheduler_name;
  // Pods name their group in this map of this part, under this key.
  std::string_view mark_part;  // "metadata" or "spec"
  std::string_view mark_map;   // such as "labels"
  std::string_view mark_key;
  // Pods may name their role in this annotation; "" if they have none.
  std::string_view role_annotation;
  // Clients that are written in Go write empty minResources, and an empty status.
  bool has_empty_members;
  // These are the members of a spec that spec() can write, in its order.
  std::vector<std::string_view> spec_members;
  kube::Json (*spec)(const GroupRequest&);
  // Returns whether the scheduler takes the pods of the stored group, or of none where `group` is
  // null. It is nullptr if the scheduler takes pods at any time.
  bool (*is_admitted)(const kube::Json& group);

  // Marks a pod, or the template of pods, for the group. `role` may be empty.
  void mark(kube::Json& pod_template, std::string_view group, std::string_view role) const;
};

const GangScheduler& volcano();
// The coscheduling plugin of kubernetes-sigs/scheduler-plugins.
const GangScheduler& coscheduling();

// Kubernetes' own scheduler. The flags of operators have no name for it.
const GangScheduler& workload();

// These read the flag of an operator that takes the name of a gang scheduler: "volcano" in any
// case, or another name under which scheduler-plugins run. Both are empty for an empty flag.
const GangScheduler* find_scheduler(std::string_view flag);
std::string_view scheduler_name(std::string_view flag);  // the schedulerName of its pods

}  // namespace trainer::gang
