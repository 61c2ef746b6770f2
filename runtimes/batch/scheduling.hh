// The scheduler of local mode has one Node. It decides which pods are bound to it, with the
// conditions and events of kube-scheduler. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/plan.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/time.hh"
#include "runtimes/views/batch_pod.hh"
#include "runtimes/views/job.hh"

namespace trainer::batch {

// This label of the Node says that its pods share the machine's ports, so two JobSets cannot have
// the same port.
inline constexpr std::string_view kSharedPortsKey = "trainer.kubeflow.org/shared-ports";

struct NodeView {
  std::string name;
  kube::ResourceList allocatable;
  bool is_unschedulable = false;
  bool has_shared_ports = false;
};
NodeView view_node(const kube::Json& node);

struct SchedulerInput {
  std::optional<NodeView> node;           // nullopt: there is none, and every pod waits
  std::vector<const BatchPodView*> pods;  // the pods of all namespaces
  std::vector<const JobView*> jobs;       // the Jobs of all JobSets
  kube::Time now;
};

// The pod is bound to the node, or its condition PodScheduled says why it waits.
struct PodPlan {
  const BatchPodView* pod = nullptr;
  kube::Plan plan;
};

// Pods are considered in groups, the oldest group first; a younger group that fits does not wait
// for an older one that does not. A group is the pods of a JobSet, of another controller, or one
// pod.
// - The requests of all pods never exceed what the node has of any resource.
// - A pod that requests no CPU counts as one CPU. That limits how many groups run side by side; a
//   group that is alone may have any number of such pods.
// - Of a JobSet all pods start or none: those of all its Jobs that exist and are to run, once each
//   of these Jobs has all its pods. A pod that is created again while others run starts by itself.
// - Where pods share the machine's ports, one group at a time has a port that its pods declare.
// Node selectors, affinities, taints and priorities are ignored. A pod for which nothing changes
// has no plan. Cost: linear in pods and Jobs, plus sorting the groups.
std::vector<PodPlan> schedule(const SchedulerInput& observed);

}  // namespace trainer::batch
