// Which pods start on the one machine of local mode, in the words of kube-scheduler. Pure.
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

// A label of a Node: its pods share the machine's ports, so two JobSets cannot have the same port.
inline constexpr std::string_view kSharedPortsKey = "trainer.kubeflow.org/shared-ports";

struct NodeView {
  std::string name;
  kube::ResourceList allocatable;
  bool is_unschedulable = false;
  bool has_shared_ports = false;
};
NodeView view_node(const kube::Json& node);

struct Placement {
  std::optional<NodeView> node;      // nullopt: there is none, and every pod waits
  std::vector<const PodView*> pods;  // of all namespaces
  std::vector<const JobView*> jobs;  // of all JobSets
  kube::Time now;
};

// What becomes of a pod: it gets the node, or its condition PodScheduled says why it waits.
struct PodPlan {
  const PodView* pod = nullptr;
  kube::Plan plan;
};

// Pods start in the order of their groups' ages; a younger group that fits does not wait for an
// older one that does not. A group is a JobSet, or what else controls pods.
// - What pods request never exceeds the node, of any resource that the node has or a pod asks for.
// - A pod that requests no CPU counts as one. That limits how many groups run side by side; a group
//   that is alone may have any size.
// - Of a JobSet all pods start or none: those of all its Jobs that exist and are to run, once each
//   of these Jobs has all its pods. What is made again while others run starts alone.
// - Declared ports of pods that share the machine's are held by one group at a time.
// Selectors, affinities, taints and priorities mean nothing with one machine. Pods that nothing
// changes for have no plan. Cost: linear in pods and Jobs, plus the groups' order.
std::vector<PodPlan> place(const Placement& observed);

}  // namespace trainer::batch
