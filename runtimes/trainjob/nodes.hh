// This file finds a TrainJob's nodes: which replicated jobs train, and how far each of their pods
// is. Pure.
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

// Returns the number of a job's nodes: the pods of the replicated jobs that train. An MPI launcher
// that only launches does not count.
std::int32_t count_nodes(const std::vector<PodSet>& pod_sets, const Runtime& runtime);

// The counts are those of a job's nodes. A place is one node, whichever pod fills it now: an index
// of a pod in an indexed Job of a replicated job that trains. Only pods of the JobSet's current
// attempt count. If several pods have one place, the one that got furthest counts.
struct NodeCounts {
  std::int32_t total = 0;
  std::int32_t created = 0;
  std::int32_t scheduled = 0;
  std::int32_t running = 0;  // phase Running or Succeeded
  std::int32_t ready = 0;    // Ready, or Succeeded
  std::int32_t failed = 0;   // failed and not replaced
  // Places whose pod is not running yet, and that had another pod, which has ended.
  std::int32_t replaced = 0;
};

// These facts summarize the pods of this attempt, those of nodes and of initializers.
struct PodFacts {
  NodeCounts nodes;
  bool has_initializers = false;
  bool are_initializers_done = true;    // all of them have succeeded
  bool is_initializer_running = false;  // at least one pod of them runs
  // This is the replicated job with a running pod for which nodes wait (dependsOn, also in several
  // steps), or empty. It is a view into the JobSet.
  std::string_view earlier_step;
  std::vector<const PodView*> waiting;  // with a waiting_reason, not being deleted
  bool has_started = false;             // some pod runs or has run
};

// `known_total` is status.nodes.total of an earlier reconcile, or 0: it shows whether a launcher
// counts.
PodFacts survey_pods(const JobSet& jobset, const std::vector<const PodView*>& pods,
                     std::int32_t known_total);

// True for a pod that the JobSet with this uid has made; pods without the label count too.
bool is_pod_of(const PodView& pod, const JobSet& jobset);

}  // namespace trainer
