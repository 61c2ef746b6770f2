// This file finds which Jobs are of the current attempt, and which state they have (JobSet,
// pkg/controllers/jobset_controller.go).
#include <fmt/format.h>

#include <algorithm>

#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

enum class Attempt { kCurrent, kPrevious, kMalformed };

std::string label_problem(const JobView& job, std::string_view label, std::string_view value,
                          std::string_view expectation) {
  return fmt::format(
      "Job {} is left alone: its label {} is \"{}\", which is not {}; correct the label, or delete "
      "the Job to have it created again",
      job.name, label, value, expectation);
}

// Returns the attempt of a Job that is restarted by itself; this needs the gate RestartJob.
// `problem` says why not.
Attempt attempt_of_single(const ReplicatedJobState* rjob, const JobView& job,
                          std::string& problem) {
  if (!rjob) {
    problem = label_problem(job, kReplicatedJobNameKey, job.replicated_job,
                            "the name of one of the JobSet's replicated jobs");
    return Attempt::kMalformed;
  }
  const auto index = parse_count(job.job_index);
  if (!index || *index >= rjob->replicas) {
    problem = label_problem(job, kJobIndexKey, job.job_index,
                            fmt::format("a number below {}", rjob->replicas));
    return Attempt::kMalformed;
  }
  // Jobs from before the gate was enabled have no such label: they count as attempt 0.
  const auto attempt = job.job_restart_attempt.empty() ? 0 : parse_count(job.job_restart_attempt);
  if (!attempt) {
    problem = label_problem(job, kJobRestartAttemptKey, job.job_restart_attempt, "a number");
    return Attempt::kMalformed;
  }
  const auto& restarts = rjob->counters.jobRestarts;
  const auto at = static_cast<std::size_t>(*index);
  const bool is_old = at < restarts.size() && *attempt < restarts[at];
  return is_old ? Attempt::kPrevious : Attempt::kCurrent;
}

Attempt attempt_of(const JobSetContext& context, const ReplicatedJobState* rjob, const JobView& job,
                   std::string& problem) {
  const auto attempt = parse_count(job.restart_attempt);
  if (!attempt) {
    problem = label_problem(job, kRestartAttemptKey, job.restart_attempt, "a number");
    return Attempt::kMalformed;
  }
  // A Job that is newer than the observed status counts as current: the status will follow.
  if (*attempt < context.jobset.status.restarts && !(rjob && is_kept(*rjob, job)))
    return Attempt::kPrevious;
  if (!context.observed.gates.restart_job) return Attempt::kCurrent;
  return attempt_of_single(rjob, job, problem);
}

void classify_current(JobSetContext& context, const JobView& job) {
  if (job.is_complete()) {
    context.jobs.successful.push_back(&job);
  } else if (job.failure()) {
    context.jobs.failed.push_back(&job);
  } else {
    context.jobs.active.push_back(&job);
  }
}

// Records which Jobs of each replicated job are gone and need not run again.
void record_removed(JobSetContext& context) {
  for (const JobView* job : context.observed.removed_jobs) {
    const auto position = parse_job_name(context.jobset.metadata.name, job->name);
    ReplicatedJobState* const rjob =
        position ? context.find_rjob(position->replicated_job) : nullptr;
    std::string problem;
    if (!rjob || attempt_of(context, rjob, *job, problem) != Attempt::kCurrent) continue;
    const bool is_back =
        std::binary_search(rjob->taken.begin(), rjob->taken.end(), position->index);
    if (!is_back && position->index < rjob->replicas) rjob->done.push_back(position->index);
  }
  for (ReplicatedJobState& rjob : context.rjobs) std::sort(rjob.done.begin(), rjob.done.end());
}

}  // namespace

void classify_jobs(JobSetContext& context, std::span<const JobView* const> jobs) {
  for (const JobView* job : jobs) {
    // A JobSet of the same name may have existed before; its Jobs do not belong to this one.
    if (job->owner_uid != context.jobset.metadata.uid) continue;
    context.failed_pods += job->failed;
    // The Job is found by its name, whatever its labels say: a second Job of this name cannot be
    // created.
    if (const auto position = parse_job_name(context.jobset.metadata.name, job->name)) {
      ReplicatedJobState* const named = context.find_rjob(position->replicated_job);
      if (named && position->index < named->replicas) named->taken.push_back(position->index);
    }
    std::string problem;
    ReplicatedJobState* const rjob = context.find_rjob(job->replicated_job);
    switch (attempt_of(context, rjob, *job, problem)) {
      case Attempt::kCurrent:
        classify_current(context, *job);
        if (rjob) ++rjob->current;
        break;
      case Attempt::kPrevious:
        context.jobs.previous.push_back(job);
        break;
      case Attempt::kMalformed:
        context.jobs.malformed.push_back(job);
        context.warn("MalformedJobLabel", std::move(problem));
        break;
    }
  }
}

void finish_classifying(JobSetContext& context) {
  for (ReplicatedJobState& rjob : context.rjobs) std::sort(rjob.taken.begin(), rjob.taken.end());
  record_removed(context);
}

}  // namespace trainer::jobset
