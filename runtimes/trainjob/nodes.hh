// A TrainJob's nodes: which replicated jobs train, and how far each of their pods is. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

// The replicated jobs that take part in the training. An MPI launcher that only launches is none of
// them.
std::int32_t count_nodes(const std::vector<PodSet>& pod_sets, const Runtime& runtime);

// How many places there are for nodes, and which pods they have now. Only pods of the JobSet's
// current attempt count, and of several pods for one place the one that got furthest.
struct NodeCounts {
  std::int32_t total = 0;
  std::int32_t created = 0;
  std::int32_t scheduled = 0;
  std::int32_t running = 0;  // phase Running or Succeeded
  std::int32_t ready = 0;    // Ready, or Succeeded
  std::int32_t failed = 0;   // failed and not replaced
  std::int32_t replaced =
      0;  // places whose pod is not running yet while another pod of that place has ended
};

// What the pods of this attempt say together, those of nodes and of initializers.
struct PodFacts {
  NodeCounts nodes;
  bool has_initializers = false;
  bool are_initializers_done = true;    // all of them have succeeded
  bool is_initializer_running = false;  // at least one pod of them runs
  std::vector<const PodView*> waiting;  // with a waiting_reason, not being deleted
  bool has_started = false;             // some pod runs or has run
};

// `known_total`: status.nodes.total of an earlier reconcile, 0 when there is none; from it follows
// whether a launcher counts.
PodFacts survey_pods(const JobSet& jobset, const std::vector<const PodView*>& pods,
                     std::int32_t known_total);

// True for a pod that the JobSet with this uid has made; pods without the label count too.
bool is_pod_of(const PodView& pod, const JobSet& jobset);

}  // namespace trainer
