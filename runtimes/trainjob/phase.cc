#include "runtimes/trainjob/phase.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtimes/lifecycle/failure.hh"
#include "runtimes/trainjob/conditions.hh"
#include "runtimes/trainjob/waiting.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

PhaseVerdict verdict(std::string_view phase, const Reason& reason, std::string message) {
  PhaseVerdict result;
  result.phase = phase;
  result.reason = reason;
  result.message = keep_head(message, 4096);
  result.is_problem = reason.meaning == Reason::Meaning::kProblem;
  return result;
}

// `reason` is a word of a status that another controller may have written.
PhaseVerdict verdict(std::string_view phase, const std::string& reason, std::string message) {
  const Reason* const known = find_reason(reason);
  return verdict(phase, known ? *known : Reason{reason}, std::move(message));
}

PhaseVerdict finished(const kube::Condition& terminal, const TrainJobStatus& status) {
  std::string message = terminal.message;
  if (terminal.type == kFailed && status.firstFailure) {
    message += fmt::format("; first failure: {}", describe(*status.firstFailure));
    if (!status.firstFailure->message.empty()) message += "\n" + status.firstFailure->message;
  }
  PhaseVerdict result = verdict(terminal.type, terminal.reason, std::move(message));
  result.is_problem = false;  // the terminal event says it
  return result;
}

std::int64_t active_jobs(const TrainJobStatus& status) {
  std::int64_t active = 0;
  for (const JobStatus& job : status.jobsStatus) active += job.active;
  return active;
}

PhaseVerdict suspended(const TrainJob& job, const TrainJobStatus& status) {
  const std::string_view queue = queue_of(job.metadata.labels);
  const bool is_queued = !queue.empty();
  const std::int64_t active = active_jobs(status);
  std::string message = is_queued
                            ? fmt::format("waits in queue \"{}\" until Kueue admits it", queue)
                            : std::string("spec.suspend is true");
  if (active > 0) message += fmt::format("; {} still stopping", count_of(active, "Job"));
  return is_queued ? verdict("Queued", reasons::kWaitingForQuota, std::move(message))
                   : verdict("Suspended", reasons::kSuspended, std::move(message));
}

// An elastic job trains with fewer nodes than it asks for.
bool is_up(const NodeCounts& nodes, const TrainJobStatus& status) {
  const std::int32_t least =
      status.elastic ? std::min(status.elastic->minNodes, nodes.total) : nodes.total;
  return nodes.total > 0 && nodes.running >= least;
}

PhaseVerdict running(const PodFacts& pods, const TrainJobStatus& status) {
  if (status.stall) return verdict("Running", reasons::kStalled, status.stall->message);
  const NodeCounts& nodes = pods.nodes;
  if (nodes.ready >= nodes.total) {
    return verdict("Running", reasons::kNodesReady,
                   fmt::format("{} of {} nodes are ready", nodes.ready, nodes.total));
  }
  if (const auto cause = dominant_cause(pods.waiting))
    return verdict("Running", cause->reason, cause->message);
  return verdict("Running", reasons::kNodesNotReady,
                 fmt::format("{} of {} nodes are ready", nodes.ready, nodes.total));
}

// A node of a running job has failed and nothing has replaced it yet. The job's policies decide
// what follows.
PhaseVerdict node_failed(const PodFacts& pods, const TrainJobStatus& status) {
  std::string message = fmt::format("{} of {} nodes failed", pods.nodes.failed, pods.nodes.total);
  if (status.firstFailure) message += "; first failure: " + describe(*status.firstFailure);
  return verdict("Running", reasons::kNodeFailed, std::move(message));
}

// `is_restart` says that the JobSet restarts. If it is false, a Job replaces a pod, and nothing of
// the JobSet is restarted.
PhaseVerdict restarting(const JobSet& jobset, bool is_restart, const PodFacts& pods) {
  const std::string progress =
      fmt::format("{} of {} nodes are running", pods.nodes.running, pods.nodes.total);
  if (const auto cause = dominant_cause(pods.waiting))
    return verdict("Restarting", cause->reason, cause->message);
  const auto* condition = restarting_condition(jobset);
  std::string message = progress;
  if (condition) message = fmt::format("{}; {}", condition->message, progress);
  if (is_restart) message = fmt::format("restart {}: {}", jobset.status.restarts, message);
  PhaseVerdict result = verdict("Restarting", reasons::kNodesReplaced, std::move(message));
  result.is_unexplained = pods.earlier_step.empty();
  return result;
}

PhaseVerdict without_pods(const TrainJobObserved& observed, const PodFacts* pods) {
  const std::int32_t total = pods ? pods->nodes.total : 0;
  std::string message = total > 0
                            ? fmt::format("waits for {} to be created", count_of(total, "pod"))
                            : "waits for its pods to be created";
  if (!observed.is_jobset_controller_active && observed.jobset &&
      observed.jobset->status.replicatedJobsStatus.empty()) {
    message += "; no JobSet controller has taken up its JobSet yet";
  }
  const bool is_after_a_step = pods && !pods->earlier_step.empty();
  if (is_after_a_step) message += fmt::format("; {} runs first", pods->earlier_step);
  PhaseVerdict result = verdict("Pending", reasons::kCreatingPods, std::move(message));
  result.is_unexplained = observed.jobset && !is_after_a_step;
  return result;
}

PhaseVerdict coming_up(const TrainJobObserved& observed, const PodFacts& pods) {
  const NodeCounts& nodes = pods.nodes;
  const auto cause = dominant_cause(pods.waiting);
  if (nodes.created == 0 && pods.has_initializers && !pods.are_initializers_done) {
    if (pods.is_initializer_running && !cause) {
      return verdict("Initializing", reasons::kInitializersRunning,
                     "the initializers fetch the model or the dataset");
    }
    if (cause)
      return verdict(pods.is_initializer_running ? "Initializing" : "Pending", cause->reason,
                     cause->message);
  }
  const bool are_all_scheduled = nodes.created > 0 && nodes.scheduled == nodes.created;
  const std::string_view phase = are_all_scheduled ? "Starting" : "Pending";
  if (cause) return verdict(phase, cause->reason, cause->message);
  if (nodes.created == 0) return without_pods(observed, &pods);
  PhaseVerdict result =
      are_all_scheduled
          ? verdict(phase, reasons::kStartingContainers,
                    fmt::format("{} of {} nodes are running", nodes.running, nodes.total))
          : verdict(phase, reasons::kScheduling,
                    fmt::format("{} of {} nodes have a machine", nodes.scheduled, nodes.total));
  result.is_unexplained = true;
  return result;
}

// Returns the phase of a job that is neither finished nor suspended and whose JobSet exists.
PhaseVerdict live(const TrainJobObserved& observed, const TrainJobStatus& before,
                  const TrainJobStatus& after, const PodFacts& pods) {
  const JobSet& jobset = *observed.jobset;
  const bool is_restart = restarting_condition(jobset) || jobset.status.restarts > before.restarts;
  const bool was_up = before.phase == "Running" || before.phase == "Restarting";
  if (is_up(pods.nodes, after) && !restarting_condition(jobset)) return running(pods, after);
  if (is_restart) return restarting(jobset, true, pods);
  if (!was_up) return coming_up(observed, pods);
  if (pods.nodes.failed > 0 && pods.nodes.replaced == 0) return node_failed(pods, after);
  return restarting(jobset, false, pods);
}

// An event explains a job if its pods do not. Refused pods count more than the reasons for which
// existing pods wait.
void explain(PhaseVerdict& result, const JobView* job_without_pods, std::string_view event) {
  const bool is_refused = job_without_pods && is_refusal_event(event);
  const bool has_own_words = !result.is_unexplained;
  if (job_without_pods && result.phase != "Running") result.is_unexplained = true;
  if (!result.is_unexplained) return;
  const auto cause = cause_of_event(event);
  if (!cause || (has_own_words && !is_refused)) return;
  result = verdict(result.phase, cause->reason, cause->message);
  result.is_unexplained = true;
}

// Returns the condition of the JobSet controller about a child that it cannot create.
const kube::Condition* find_refusal(const JobSet& jobset) {
  const auto* failure = kube::find_condition(jobset.status.conditions, kReplicaFailure);
  return failure && failure->is_true() ? failure : nullptr;
}

}  // namespace

const kube::Condition* restarting_condition(const JobSet& jobset) {
  const kube::Condition* condition =
      kube::find_condition(jobset.status.conditions, "RestartingJobSet");
  return condition && condition->is_true() ? condition : nullptr;
}

bool is_problem_reason(std::string_view reason) {
  const Reason* const known = find_reason(reason);
  return !reason.empty() && (!known || known->meaning == Reason::Meaning::kProblem);
}

PhaseVerdict compute_phase(const TrainJobObserved& observed, const TrainJobStatus& before,
                           const TrainJobStatus& after, const PodFacts* pods,
                           const JobView* job_without_pods, const std::optional<Blocked>& blocked) {
  if (const kube::Condition* terminal = find_terminal(after)) return finished(*terminal, after);
  PhaseVerdict result;
  if (observed.job.is_suspended()) {
    result = suspended(observed.job, after);
  } else if (!observed.jobset || !pods) {
    result = without_pods(observed, pods);
  } else {
    result = live(observed, before, after, *pods);
    explain(result, job_without_pods, observed.waiting_event);
    if (const auto* refusal = find_refusal(*observed.jobset))
      result = verdict(result.phase, refusal->reason, refusal->message);
  }
  // A refused write is a stronger reason than one that the job waits for. The phase follows from
  // the pods alone.
  return blocked ? verdict(result.phase, blocked->reason, blocked->message) : result;
}

}  // namespace trainer
