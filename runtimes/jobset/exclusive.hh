// Exclusive placement keeps each Job in a topology domain of its own (JobSet, pkg/webhooks/pod_*.go
// and pkg/controllers/pod_controller.go). Pure: other objects are read through functions, which the
// caller answers from its caches or by GET.
//
// The pod of completion index 0 leads: affinity keeps it in a domain of its own. The others follow:
// they are admitted only once the leader has a node, and get that node's domain as node selector.
// Until then the Job controller tries again to create them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/json_cursor.hh"
#include "kube/model/meta.hh"
#include "kube/model/plan.hh"

namespace trainer::jobset {

// Placement needs these facts of a leader pod.
struct LeaderPod {
  std::string name;
  std::string owner_uid;  // the uid of its controller, the Job; "" without
  std::string node;       // spec.nodeName; "" while it is not scheduled
  std::string phase;
  bool is_deleting = false;
};

struct PlacementLookups {
  // Returns the pods with the exclusive-topology annotation whose name without its last segment is
  // this.
  std::function<std::vector<LeaderPod>(const std::string& ns, const std::string& base_name)>
      leaders;
  // Returns a node's labels; nullopt if there is no such node.
  std::function<std::optional<kube::StringMap>(const std::string& node)> node_labels;
};

// Returns "<jobset>-<replicatedjob>-<job index>-0" from a pod's labels. Errors (kInvalid) name the
// missing label.
kube::Result<std::string> leader_base_name(const kube::Json& pod);

// Returns the pod with the changes of the mutating webhook. It is unchanged if placement requires
// nothing, and for followers whose leader is not scheduled (deny_pod refuses those). Errors:
// kNotFound if the leader's node is gone, kInvalid if the node lacks the topology label.
kube::Result<kube::Json> place_pod(kube::Json pod, const PlacementLookups& lookups);

// Returns why the validating webhook refuses the pod; nullopt if it does not.
std::optional<std::string> deny_pod(const kube::Json& pod, const PlacementLookups& lookups);

// These members of a listed pod are read here. The others are not parsed, since a namespace may
// have many large pods.
const kube::JsonFilter& read_of_listed_pods();

// The selector finds the candidates for this follower's leader by label: the whole Job's pods at
// most. Errors (kInvalid): a label that the API server is going to refuse.
kube::Result<std::string> leader_selector(const kube::Json& pod);

// Returns a listed pod in the form of PlacementLookups::leaders; nullopt if it is no leader of this
// name.
std::optional<LeaderPod> read_leader(const kube::Json& pod, std::string_view base_name);

// Returns whether a pod is a leader that has a node (PodView::is_exclusive_leader): its events
// start a check of its followers. The result is false for a pod that has ended: another one may be
// the leader by now.
bool is_scheduled_leader(const kube::Json& pod);

// Returns the repair of followers that are in another domain than their leader: they are marked as
// disrupted, so that a podFailurePolicy can ignore them, and deleted. All followers of the Job are,
// since they move together. Those that have ended or are being deleted do not count: their
// successors would be deleted with them. `pods` are the pods with the leader's job-key, from one
// namespace. Pods of the node selector strategy are not changed. Errors: kInvalid if the leader
// lacks its job-key label, a controller or its node the topology label; kNotFound if followers are
// misplaced but the leader's node is gone.
kube::Result<std::vector<kube::Action>> repair_placement(const kube::Json& leader,
                                                         const std::vector<kube::Json>& pods,
                                                         const PlacementLookups& lookups,
                                                         kube::Time now);

}  // namespace trainer::jobset
