// This file has the order of the rules of a TrainJob's life. Each rule is in the file of its name.
#include "runtimes/trainjob/plan.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/api.hh"
#include "runtimes/lifecycle/finished_marker.hh"
#include "runtimes/lifecycle/ttl.hh"
#include "runtimes/trainjob/children.hh"
#include "runtimes/trainjob/conditions.hh"
#include "runtimes/trainjob/deadline.hh"
#include "runtimes/trainjob/elastic.hh"
#include "runtimes/trainjob/events.hh"
#include "runtimes/trainjob/first_failure.hh"
#include "runtimes/trainjob/goodput.hh"
#include "runtimes/trainjob/hang_policy.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/needed_events.hh"
#include "runtimes/trainjob/phase.hh"
#include "runtimes/trainjob/process_restarts.hh"
#include "runtimes/trainjob/snapshot.hh"
#include "runtimes/trainjob/stacks.hh"
#include "runtimes/trainjob/status.hh"
#include "runtimes/trainjob/stragglers.hh"

namespace trainer {
namespace {

using std::chrono::milliseconds;

// Nodes that run this soon after they got their machines need no event about the machines.
constexpr std::chrono::seconds kScheduledEventDelay{5};

void wake_within(TrainJobPlan& plan, std::chrono::microseconds wait) {
  // The wait is rounded up: a wake before the moment would need a second one.
  const auto delay = std::max(std::chrono::ceil<milliseconds>(wait), milliseconds(1));
  if (!plan.requeue_after || delay < *plan.requeue_after) plan.requeue_after = delay;
}

class TrainJobPlanner {
 public:
  TrainJobPlanner(const TrainJobObserved& observed, const PipelineOptions& options)
      : observed_(observed),
        options_(options),
        before_(observed.job.status),
        after_(observed.job.status),
        jobset_(our_jobset(observed)) {}

  TrainJobPlan run() {
    set_suspended(after_, observed_.job.is_suspended(), observed_.now.whole_seconds());
    mirror();
    note_run_policy();
    check_runtime_kind();
    check_deadline();
    settle_stall();
    if (has_heartbeats() && jobset_ && !is_finished(after_))
      answer_hang(observed_, *jobset_, after_, plan_);
    if (observed_.heartbeats || after_.processRestarts)
      settle_process_restarts(observed_, jobset_, has_heartbeats(), after_, plan_);
    request_run_policy();
    if (!is_finished(after_)) children_ = plan_children(observed_, options_, plan_);
    settle_elastic(observed_, jobset_, after_, plan_);
    if (!plan_.needs_objects.empty()) return reading_only();
    note_refusal();
    settle_status();
    plan_stacks(observed_, after_, plan_);
    if (!plan_.needs_objects.empty()) return reading_only();
    note_progress();
    clean_up();
    if (!plan_.actions.empty()) plan_.read_stamp = stamp_of(observed_);
    return std::move(plan_);
  }

 private:
  static const JobSet* our_jobset(const TrainJobObserved& observed) {
    const JobSet* jobset = observed.jobset ? observed.jobset : ended_jobset(observed);
    return jobset && is_owned_by(jobset->metadata, observed.job) ? jobset : nullptr;
  }

  // Only a JobSet that ended before it was deleted matters. One that was deleted before its end is
  // made again.
  static const JobSet* ended_jobset(const TrainJobObserved& observed) {
    const JobSet* gone = observed.deleted_jobset;
    const bool has_ended = gone && (kube::is_condition_true(gone->status.conditions, "Completed") ||
                                    kube::is_condition_true(gone->status.conditions, "Failed"));
    return has_ended ? gone : nullptr;
  }

  void mirror() {
    if (!jobset_) return count_no_pods();
    mirror_jobset(after_, *jobset_, observed_.now);
    after_.restarts = std::max(jobset_->status.restarts, 0);
    after_.executionAttempts = jobset_->status.executionAttempts;
    after_.restartBudget = restart_budget(*jobset_);
    after_.firstFailure = first_failure(after_.firstFailure, *jobset_, observed_.pods);
  }

  // Kueue ends an eviction, and gives the quota back, once nothing is active.
  void count_no_pods() {
    if (is_finished(after_)) return;
    // It was the failure of a JobSet that is gone; the job begins again.
    after_.firstFailure.reset();
    for (auto& each : after_.jobsStatus) each.active = each.ready = 0;
  }

  // The runtime's defaults are kept in the status, so that no reconcile has to read the snapshot
  // for them.
  void note_run_policy() {
    if (!before_.runtimeSnapshotHash.empty()) return;
    const TrainJob& job = observed_.job;
    const kube::ReadObject* stored = known_snapshot(observed_);
    if (stored && stored->exists() && stored->controller_uid != job.metadata.uid) return;
    if (!stored || !stored->exists()) stored = known_runtime(observed_);
    const auto content = stored ? content_of(*stored) : nullptr;
    if (!content) return;
    const auto runtime = runtime_in(*content, job.spec.runtimeRef, job.metadata.ns);
    if (!runtime) return;
    const RunPolicy defaults = (*runtime)->spec.runPolicy.value_or(RunPolicy());
    after_.activeDeadlineSeconds = defaults.activeDeadlineSeconds;
    after_.ttlSecondsAfterFinished = defaults.ttlSecondsAfterFinished;
  }

  // A job may end before its controller has written the defaults. Its snapshot still exists then,
  // or else the runtime.
  void request_run_policy() {
    const bool ends_now = is_finished(after_) && !is_finished(before_);
    if (!ends_now || !before_.runtimeSnapshotHash.empty()) return;
    if (!is_supported_runtime(observed_.job.spec.runtimeRef)) return;
    const kube::ReadObject* const snapshot = known_snapshot(observed_);
    if (!snapshot)
      plan_.needs_objects.push_back(snapshot_object(observed_.job));
    else if (!snapshot->exists() && !known_runtime(observed_))
      plan_.needs_objects.push_back(runtime_object(observed_.job));
  }

  void check_runtime_kind() {
    const RuntimeRef& ref = observed_.job.spec.runtimeRef;
    if (is_finished(after_) || is_supported_runtime(ref)) return;
    fail(after_, reasons::kRuntimeNotSupported,
         fmt::format("unsupported runtime: {}", runtime_kind_name(ref)), observed_.now);
  }

  void check_deadline() {
    if (is_finished(after_)) return;
    const auto deadline = deadline_of(observed_.job, after_);
    if (!deadline) return;
    if (observed_.now <= *deadline)
      return plan_.due_within(*deadline - observed_.now + milliseconds(1));
    fail(after_, reasons::kDeadlineExceeded, "TrainJob exceeded its active deadline",
         observed_.now);
  }

  TrainJobPlan reading_only() {
    TrainJobPlan needs;
    needs.needs_objects = std::move(plan_.needs_objects);
    needs.read_stamp = stamp_of(observed_);
    return needs;
  }

  // This is the API server's answer to the last attempt. It no longer matters when nothing is left
  // to write.
  void note_refusal() {
    if (!observed_.refusal || plan_.actions.empty() || children_.blocked) return;
    // A job needs no stacks.
    if (is_stacks(observed_.job, observed_.refusal->resource, observed_.refusal->name)) return;
    std::string message = observed_.refusal->message;
    // An earlier version may have built the JobSet of a job that waits: its fields cannot change.
    const bool is_invalid_update = observed_.jobset && observed_.refusal->resource == kJobSets &&
                                   observed_.refusal->code == kube::ErrorCode::kInvalid;
    if (is_invalid_update)
      message += fmt::format("; or delete JobSet \"{}\" to have it made again",
                             observed_.job.metadata.key().to_string());
    children_.blocked = Blocked{reasons::kChildRefused, std::move(message), true};
  }

  void settle_status() {
    if (!is_finished(after_) && !children_.snapshot_hash.empty())
      after_.runtimeSnapshotHash = children_.snapshot_hash;
    if (children_.is_other_snapshot) {
      // The status forgets the old hash before the new text is written. Otherwise the job would be
      // refused the text that it has written itself.
      after_.runtimeSnapshotHash.clear();
      plan_.status_time = kube::Plan::StatusTime::kBeforeActions;
    }
    const PodFacts facts = settle_nodes();
    if (facts.nodes.total > 0 && facts.nodes.scheduled >= facts.nodes.total)
      plan_.scheduled_since = observed_.scheduled_since.value_or(observed_.now);
    settle_times(facts);
    const JobView* const job_without_pods = find_job_without_pods(observed_.jobs);
    const PhaseVerdict verdict =
        compute_phase(observed_, before_, after_, jobset_ ? &facts : nullptr, job_without_pods,
                      children_.blocked);
    after_.phase = verdict.phase;
    after_.reason = verdict.reason;
    after_.message = verdict.message;
    if (observed_.heartbeats || after_.goodput || !after_.stragglers.empty()) settle_steps();
    if (verdict.is_unexplained) request_events(job_without_pods);
    if (before_ == after_) return;  // this is so nearly always
    const std::vector<std::string> cuts = fit(after_);
    plan_.status_patch = status_patch(before_, after_);
    if (!plan_.status_patch) return;
    if (is_minor_change(before_, after_)) plan_.status_change = kube::Plan::StatusChange::kCounters;
    plan_.events = events_between(before_, after_, verdict, children_.blocked);
    if (plan_.is_status_minor() && !before_.phase.empty()) return;
    for (const std::string& cut : cuts)
      plan_.events.push_back({"Warning", "StatusTruncated", "status: " + cut});
  }

  // These are the events that no difference of the status shows.
  void note_progress() {
    if (is_creating_jobset())
      plan_.events.insert(plan_.events.begin(), created_event(observed_.job));
    if (!children_.ignored.empty()) plan_.events.push_back(ignored_event(children_.ignored));
    if (plan_.scheduled_since) note_scheduled(*plan_.scheduled_since);
  }

  // Nodes that run soon need no such event: their start is an event, too, and each event is a
  // request.
  void note_scheduled(kube::Time& since) {
    if (since == kube::Time()) return;
    const bool is_starting = after_.phase == "Starting";
    const auto waited = observed_.now - since;
    if (is_starting && waited < kScheduledEventDelay)
      return wake_within(plan_, kScheduledEventDelay - waited);
    since = kube::Time();
    if (is_starting)
      plan_.events.insert(plan_.events.begin(), scheduled_event(after_.nodes->total));
  }

  bool is_creating_jobset() const {
    return !observed_.jobset &&
           std::any_of(plan_.actions.begin(), plan_.actions.end(), [](const kube::Action& action) {
             return action.resource == kJobSets && action.verb == kube::Action::Verb::kApply;
           });
  }

  PodFacts settle_nodes() {
    const std::int32_t reported = before_.nodes ? before_.nodes->total : observed_.total_nodes;
    const std::int32_t total_nodes = children_.total_nodes.value_or(reported);
    plan_.total_nodes = children_.total_nodes;
    PodFacts facts;
    if (!jobset_) {
      if (total_nodes > 0 && !is_finished(after_)) set_nodes(total_nodes, 0);
      return facts;
    }
    facts = survey_pods(*jobset_, observed_.pods, total_nodes);
    // The pods of a finished job may be removed; the status keeps how many there were.
    if (!is_finished(before_)) set_nodes(facts.nodes.total, facts.nodes.ready);
    return facts;
  }

  void set_nodes(std::int32_t total, std::int32_t ready) {
    if (!after_.nodes) after_.nodes.emplace();
    after_.nodes->total = total;
    after_.nodes->ready = ready;
  }

  void settle_times(const PodFacts& facts) {
    const kube::Condition* terminal = find_terminal(after_);
    if (terminal && !after_.completionTime) {
      after_.completionTime =
          terminal->last_transition_time.value_or(observed_.now.whole_seconds());
    }
    if (after_.startTime) return;
    if (terminal) {
      // The job ran and ended between two reconciles.
      if (jobset_ && terminal->reason != reasons::kDeadlineExceeded.name)
        after_.startTime = jobset_->metadata.creation_timestamp;
    } else if (facts.has_started) {
      after_.startTime = observed_.now.whole_seconds();
    }
  }

  void settle_steps() {
    const bool may_run = !is_finished(after_) && jobset_ && !observed_.job.is_suspended();
    const HeartbeatFacts* const heartbeats = has_heartbeats() ? observed_.heartbeats : nullptr;
    settle_stragglers(heartbeats, may_run, before_, after_);
    if (const auto wait = settle_goodput(observed_, heartbeats, before_, after_))
      wake_within(plan_, *wait);
  }

  // A finished job keeps what was seen last: it may be why it failed.
  void settle_stall() {
    if (!after_.stall && !observed_.heartbeats) return;  // this is so nearly always
    if (is_finished(after_)) return;
    const bool may_run = jobset_ && !observed_.job.is_suspended();
    if (!may_run || after_.restarts != before_.restarts)
      after_.stall.reset();
    else if (has_heartbeats())
      after_.stall = observed_.heartbeats->stall;
    if (!after_.stall) return;
    after_.stall->summary = summary_of(*after_.stall, observed_.now);
    wake_within(plan_, summary_lasts(*after_.stall, observed_.now));
  }

  bool has_heartbeats() const {
    return observed_.heartbeats &&
           are_current(*observed_.heartbeats, observed_.pods, after_.restarts);
  }

  // No pod says why the job does not start, but an event may say it.
  void request_events(const JobView* job_without_pods) {
    const NeededEvents needed = needed_events(observed_, after_, jobset_, job_without_pods);
    plan_.needs_events = needed.source;
    wake_within(plan_, needed.again_after);
  }

  // A finished job still needs these actions. All of them are repeated until they are done, also if
  // one fails.
  void clean_up() {
    if (!is_finished(after_)) return;
    // Nothing is built any more, and a snapshot may be large.
    plan_.memory = kube::Plan::Memory::kForget;
    if (is_past_deadline(after_) || has_failed_by_heartbeats(after_)) remove_jobset();
    // The mark is written when the stored status has the end.
    if (observed_.marks_finished && is_finished(before_)) mark();
    remove_after_ttl();
  }

  void mark() {
    auto action =
        mark_finished(kTrainJobs, observed_.job.metadata, observed_.job_object.get("status"));
    if (action) plan_.actions.push_back(std::move(*action));
  }

  void remove_jobset() {
    if (plan_.status_patch.has_value()) plan_.status_time = kube::Plan::StatusTime::kBeforeActions;
    if (!observed_.jobset || observed_.jobset != jobset_ || jobset_->metadata.deletion_timestamp)
      return;
    kube::Action action;
    action.verb = kube::Action::Verb::kDelete;
    action.resource = kJobSets;
    action.key = observed_.job.metadata.key();
    action.uid = jobset_->metadata.uid;
    action.propagation = "Background";
    plan_.actions.push_back(std::move(action));
  }

  void remove_after_ttl() {
    const auto expiry = expiry_of(observed_.job, after_);
    if (!expiry) return;
    auto removal = expire(plan_, kTrainJobs, observed_.job.metadata, *expiry, observed_.now);
    if (!removal) return;
    // The end must be recorded, for clients that watch, before the object is deleted. Counters
    // whose write may be delayed are not waited for.
    if (plan_.status_patch && !plan_.is_status_minor()) return wake_within(plan_, milliseconds(1));
    plan_.status_patch.reset();
    plan_.actions.push_back(*std::move(removal));
  }

  const TrainJobObserved& observed_;
  const PipelineOptions& options_;
  const TrainJobStatus& before_;
  TrainJobStatus after_;
  const JobSet* jobset_;  // owned by the job, or nullptr
  ChildrenState children_;
  TrainJobPlan plan_;
};

bool is_owned(const TrainJob& job) {
  return !job.spec.managedBy || job.spec.managedBy->empty() ||
         *job.spec.managedBy == kTrainJobController;
}

TrainJobPlan put_back(const TrainJobObserved& observed, TrainJobStatus status) {
  TrainJobPlan plan;
  fit(status);
  plan.status_patch = status_patch(observed.job.status, status);
  plan.events.push_back(restored_event());
  return plan;
}

}  // namespace

std::optional<TrainJobStatus> status_before_restore(const TrainJob& job,
                                                    const kube::Json& job_object) {
  if (!job.status.phase.empty() || !job.status.conditions.empty()) return std::nullopt;
  auto marked = marked_status(job.metadata);
  if (!marked) return std::nullopt;
  kube::Json object = job_object;
  auto restored = read_stored_trainjob(object.set("status", std::move(*marked)));
  if (!restored || !is_finished(restored->status)) return std::nullopt;
  return std::move(restored->status);
}

TrainJobPlan plan_trainjob(const TrainJobObserved& observed, const PipelineOptions& options) {
  // A job of another controller gets nothing, not even a status. A job that is being deleted keeps
  // the status that it ended with: its children are removed by their owner references, and their
  // last changes say nothing about the job.
  if (!is_owned(observed.job) || observed.job.metadata.deletion_timestamp) return {};
  if (auto status = status_before_restore(observed.job, observed.job_object))
    return put_back(observed, std::move(*status));
  return TrainJobPlanner(observed, options).run();
}

}  // namespace trainer
