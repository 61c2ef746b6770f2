// Which Jobs are of the current attempt, and how they fare: jobset-contract 3.3.
#include <fmt/format.h>

#include <algorithm>

#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

enum class Attempt { kCurrent, kPrevious, kMalformed };

std::string complaint(const JobView& job, std::string_view label, std::string_view value,
                      std::string_view expectation) {
  return fmt::format(
      "Job {} is left alone: its label {} is \"{}\", which is not {}; correct the label, or delete "
      "the Job to have it created anew",
      job.name, label, value, expectation);
}

// Of a Job that is restarted by itself; needs the gate RestartJob. `problem` says why not.
Attempt attempt_of_single(const Wave* wave, const JobView& job, std::string& problem) {
  if (!wave) {
    problem = complaint(job, kReplicatedJobNameKey, job.replicated_job,
                        "the name of one of the JobSet's replicated jobs");
    return Attempt::kMalformed;
  }
  const auto index = parse_count(job.job_index);
  if (!index || *index >= wave->replicas) {
    problem = complaint(job, kJobIndexKey, job.job_index,
                        fmt::format("a number below {}", wave->replicas));
    return Attempt::kMalformed;
  }
  // Jobs from before the gate was opened have no such label: they are the first of their kind.
  const auto attempt = job.job_restart_attempt.empty() ? 0 : parse_count(job.job_restart_attempt);
  if (!attempt) {
    problem = complaint(job, kJobRestartAttemptKey, job.job_restart_attempt, "a number");
    return Attempt::kMalformed;
  }
  const auto& restarts = wave->counters.jobRestarts;
  const auto at = static_cast<std::size_t>(*index);
  const bool is_old = at < restarts.size() && *attempt < restarts[at];
  return is_old ? Attempt::kPrevious : Attempt::kCurrent;
}

Attempt attempt_of(const Pass& pass, const Wave* wave, const JobView& job, std::string& problem) {
  const auto attempt = parse_count(job.restart_attempt);
  if (!attempt) {
    problem = complaint(job, kRestartAttemptKey, job.restart_attempt, "a number");
    return Attempt::kMalformed;
  }
  // A Job that is newer than the status we know counts as current: the status is what lags.
  if (*attempt < pass.jobset.status.restarts) return Attempt::kPrevious;
  if (!pass.observed.gates.restart_job) return Attempt::kCurrent;
  return attempt_of_single(wave, job, problem);
}

void put_current(Pass& pass, const JobView& job) {
  if (job.is_complete()) {
    pass.jobs.successful.push_back(&job);
  } else if (job.failure()) {
    pass.jobs.failed.push_back(&job);
  } else {
    pass.jobs.active.push_back(&job);
  }
}

// Which Job each replicated job need not run again, although it is gone.
void note_removed(Pass& pass) {
  for (const JobView* job : pass.observed.removed_jobs) {
    const auto position = parse_job_name(pass.jobset.metadata.name, job->name);
    Wave* const wave = position ? pass.find_wave(position->replicated_job) : nullptr;
    std::string problem;
    if (!wave || attempt_of(pass, wave, *job, problem) != Attempt::kCurrent) continue;
    const bool is_back =
        std::binary_search(wave->taken.begin(), wave->taken.end(), position->index);
    if (!is_back && position->index < wave->replicas) wave->done.push_back(position->index);
  }
  for (Wave& wave : pass.waves) std::sort(wave.done.begin(), wave.done.end());
}

}  // namespace

void sort_jobs(Pass& pass) {
  for (const JobView* job : pass.observed.jobs) {
    // A JobSet of the same name may have been there before; its Jobs are not ours.
    if (job->owner_uid != pass.jobset.metadata.uid) continue;
    // Names decide what exists, since it is names that collide.
    if (const auto position = parse_job_name(pass.jobset.metadata.name, job->name)) {
      Wave* const named = pass.find_wave(position->replicated_job);
      if (named && position->index < named->replicas) named->taken.push_back(position->index);
    }
    std::string problem;
    Wave* const wave = pass.find_wave(job->replicated_job);
    switch (attempt_of(pass, wave, *job, problem)) {
      case Attempt::kCurrent:
        put_current(pass, *job);
        if (wave) ++wave->current;
        break;
      case Attempt::kPrevious:
        pass.jobs.previous.push_back(job);
        break;
      case Attempt::kMalformed:
        pass.jobs.malformed.push_back(job);
        pass.warn("MalformedJobLabel", std::move(problem));
        break;
    }
  }
  for (Wave& wave : pass.waves) std::sort(wave.taken.begin(), wave.taken.end());
  note_removed(pass);
}

}  // namespace trainer::jobset
