#include "api/describe/trainjob.hh"

#include "api/kinds/kinds.hh"

namespace trainer {

ApiKind trainjob_kind() {
  const std::vector<PrinterColumn> columns{
      {"State", "string", ".status.phase", "Where the job stands"},
      {"Nodes", "string", ".status.nodes.summary", "Training nodes that run, of all"},
      // It shows the first of the two that exists.
      {"Restarts", "string", ".status['restartBudget','restarts']",
       "Restarts of all nodes together, of those allowed"},
      // It shows the first of the two that exists.
      {"Progress", "string", ".status['stall','trainerStatus']['summary','progressPercentage']",
       "Per cent, as the training code reports it, or the rank that keeps it from making steps"},
      {"Runtime", "string", ".spec.runtimeRef.name", "The blueprint"},
      kAgeColumn,
      {"Reason", "string", ".status.reason", "Why the job stands there", 1},
      {"Queue", "string", R"(.metadata.labels.kueue\.x-k8s\.io/queue-name)", "The queue of Kueue",
       1},
      {"Attempt", "integer", ".status['executionAttempts','restarts']",
       "TRAINER_ATTEMPT of the pods: restarts, and evictions where it is set", 1},
      {"First Failure", "string", ".status.firstFailure.pod", "The pod that failed first", 1},
      {"Waiting For", "string", ".status.message", "The reason as a sentence", 1}};
  return {kTrainJobs,
          {{.name = "v1alpha1",
            .make_schema = root_schema<TrainJob>,
            .columns = columns,
            .scale = ScaleSubresource{".spec.trainer.numNodes", ".status.nodes.total",
                                      ".status.elastic.selector"}}}};
}

}  // namespace trainer
