#include "runtimes/trainjob/nodes.hh"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>

#include "kube/model/name_index.hh"

namespace trainer {
namespace {

constexpr std::string_view kNode = "node";
constexpr std::string_view kTrainerStep = "trainer";

bool is_initializer(std::string_view ancestor) {
  return ancestor == "dataset-initializer" || ancestor == "model-initializer";
}

std::int64_t pods_of(const ReplicatedJob& job) {
  const kube::Json* spec = job.template_.find("spec");
  const std::int64_t parallelism = spec ? spec->get_int("parallelism", 1) : 1;
  return std::clamp<std::int64_t>(parallelism, 0, std::numeric_limits<std::int32_t>::max());
}

std::int32_t to_count(std::int64_t value) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::int32_t>::max()));
}

// This is one replicated job with its role and the first number of its places.
struct TrackedJob {
  std::string_view name;
  enum class Role { kTrains, kInitializes, kOther } role = Role::kOther;
  // Jobs that train, or other jobs that these wait for, need this state of the job.
  enum class Awaited { kNothing, kReady, kComplete } awaited = Awaited::kNothing;
  std::int64_t first = 0;
  std::int64_t width = 1;   // pods a Job
  std::int64_t places = 0;  // pods of all its Jobs
};

struct TrackedJobs {
  std::vector<TrackedJob> all;
  std::int64_t total = 0;
  std::optional<kube::NameIndex> by_name;

  // A job has few replicated jobs nearly always, and then needs no index.
  const TrackedJob* find(std::string_view name) const {
    if (by_name) {
      const auto at = by_name->find(name);
      return at ? &all[*at] : nullptr;
    }
    for (const TrackedJob& job : all) {
      if (job.name == name) return &job;
    }
    return nullptr;
  }

  void await(const DependsOn& dependency) {
    const TrackedJob* const found = find(dependency.name);
    if (!found) return;
    TrackedJob& job = all[static_cast<std::size_t>(found - all.data())];
    job.awaited =
        std::max(job.awaited, dependency.status == "Complete" ? TrackedJob::Awaited::kComplete
                                                              : TrackedJob::Awaited::kReady);
  }

  // `jobs` are those that this object was made from. A job depends only on jobs before it in the
  // list.
  void await_steps(const std::vector<ReplicatedJob>& jobs) {
    for (std::size_t i = jobs.size(); i-- > 0;) {
      const bool is_waiting = all[i].role == TrackedJob::Role::kTrains ||
                              all[i].awaited != TrackedJob::Awaited::kNothing;
      if (!is_waiting) continue;
      for (const DependsOn& dependency : jobs[i].dependsOn) await(dependency);
    }
  }

  // Numbers the places. If no job is marked as training, all but the initializers train.
  void settle() {
    constexpr std::size_t kFew = 16;
    if (all.size() > kFew) by_name.emplace(all, [](const TrackedJob& job) { return job.name; });
    const bool is_marked = std::any_of(all.begin(), all.end(), [](const TrackedJob& job) {
      return job.role == TrackedJob::Role::kTrains;
    });
    for (TrackedJob& job : all) {
      if (!is_marked && job.role == TrackedJob::Role::kOther) job.role = TrackedJob::Role::kTrains;
      if (job.role != TrackedJob::Role::kTrains) continue;
      job.first = total;
      total += job.places;
    }
  }
};

std::int64_t places_of(const ReplicatedJob& job) {
  return pods_of(job) * std::max(job.replica_count(), 0);
}

// If a job named `node` is beside the job with the trainer label, the runtime is one for MPI: the
// labelled job launches. The launcher trains, too, if runLauncherAsNode is set. The JobSet does not
// show that, but the number of nodes does.
TrackedJobs tracked_jobs_of(const JobSet& jobset, std::int32_t known_total) {
  std::int64_t labelled = 0;
  std::int64_t named = -1;
  for (const ReplicatedJob& job : jobset.spec.replicatedJobs) {
    if (job.name == kNode) {
      named = places_of(job);
    } else if (ancestor_of(job) == kTrainerStep) {
      labelled += places_of(job);
    }
  }
  const bool is_mpi = named >= 0 && labelled > 0;
  const bool launches_only = is_mpi && known_total != labelled + named;

  TrackedJobs tracked_jobs;
  for (const ReplicatedJob& job : jobset.spec.replicatedJobs) {
    TrackedJob tracked;
    tracked.name = job.name;
    tracked.width = pods_of(job);
    tracked.places = places_of(job);
    const std::string_view ancestor = ancestor_of(job);
    if (is_initializer(ancestor)) {
      tracked.role = TrackedJob::Role::kInitializes;
    } else if (job.name == kNode || (ancestor == kTrainerStep && !launches_only)) {
      tracked.role = TrackedJob::Role::kTrains;
    }
    tracked_jobs.all.push_back(tracked);
  }
  tracked_jobs.settle();
  tracked_jobs.await_steps(jobset.spec.replicatedJobs);
  return tracked_jobs;
}

// Pods without an index (completionMode NonIndexed) have a place each, counted down from -1.
std::int64_t place_of(const PodView& pod, const TrackedJob& job, std::int64_t ordinal) {
  if (!pod.index) return -1 - ordinal;
  std::int32_t job_index = 0;
  std::from_chars(pod.job_index.data(), pod.job_index.data() + pod.job_index.size(), job_index);
  return job.first + job_index * job.width + *pod.index;
}

// The progress says how far a pod got. If one place has several pods, the furthest counts.
enum class PodProgress { kGone, kFailed, kUnscheduled, kScheduled, kRunning, kReady };

PodProgress progress_of(const PodView& pod) {
  if (pod.phase == "Failed") return PodProgress::kFailed;
  // An evicted pod may end with exit code 0. It is no node of the next admission.
  if (pod.is_deleting) return PodProgress::kGone;
  if (pod.phase == "Succeeded") return PodProgress::kReady;
  if (pod.phase == "Running") return pod.is_ready ? PodProgress::kReady : PodProgress::kRunning;
  return pod.node_name.empty() ? PodProgress::kUnscheduled : PodProgress::kScheduled;
}

// Returns whether nodes wait for this job while one of its pods is this far.
bool is_awaited(const TrackedJob& job, PodProgress progress) {
  if (job.awaited == TrackedJob::Awaited::kNothing) return false;
  return progress == PodProgress::kRunning ||
         (progress == PodProgress::kReady && job.awaited == TrackedJob::Awaited::kComplete);
}

struct Place {
  PodProgress progress = PodProgress::kGone;
  bool had_another = false;  // a pod of this place has ended or is ending
};

void count_place(NodeCounts& counts, const Place& place) {
  const PodProgress s = place.progress;
  if (s == PodProgress::kGone) return;
  if (s == PodProgress::kFailed) {
    ++counts.failed;
    return;
  }
  ++counts.created;
  if (s >= PodProgress::kScheduled) ++counts.scheduled;
  if (s >= PodProgress::kRunning) ++counts.running;
  if (s == PodProgress::kReady) ++counts.ready;
  if (place.had_another && s < PodProgress::kRunning) ++counts.replaced;
}

void survey_initializers(PodFacts& facts, const JobSet& jobset, const TrackedJobs& tracked_jobs) {
  std::int64_t waiting = 0;
  for (const TrackedJob& job : tracked_jobs.all)
    waiting += job.role == TrackedJob::Role::kInitializes ? 1 : 0;
  if (waiting == 0) return;
  facts.has_initializers = true;
  for (const ReplicatedJobStatus& status : jobset.status.replicatedJobsStatus) {
    const TrackedJob* job = status.succeeded == 0 ? nullptr : tracked_jobs.find(status.name);
    if (job && job->role == TrackedJob::Role::kInitializes) --waiting;
  }
  facts.are_initializers_done = facts.are_initializers_done && waiting <= 0;
}

}  // namespace

std::int32_t count_nodes(const std::vector<PodSet>& pod_sets, const Runtime& runtime) {
  const auto& policy = runtime.spec.mlPolicy;
  const bool is_pure_launcher = policy && policy->mpi &&
                                !policy->mpi->runLauncherAsNode.value_or(false) &&
                                std::any_of(pod_sets.begin(), pod_sets.end(),
                                            [](const PodSet& set) { return set.name == kNode; });
  std::int64_t marked = 0;
  std::int64_t others = 0;
  for (const PodSet& set : pod_sets) {
    const std::int64_t places = std::int64_t{set.count} * set.replicas;
    if (set.name == kNode || (set.ancestor == kTrainerStep && !is_pure_launcher)) {
      marked += places;
    } else if (!is_initializer(set.ancestor)) {
      others += places;
    }
  }
  return to_count(marked > 0 ? marked : others);
}

bool is_pod_of(const PodView& pod, const JobSet& jobset) {
  return jobset.metadata.uid.empty() || pod.is_of_jobset(jobset.metadata.uid);
}

PodFacts survey_pods(const JobSet& jobset, const std::vector<const PodView*>& pods,
                     std::int32_t known_total) {
  const TrackedJobs tracked_jobs = tracked_jobs_of(jobset, known_total);
  PodFacts facts;
  facts.nodes.total = to_count(tracked_jobs.total);
  survey_initializers(facts, jobset, tracked_jobs);

  std::unordered_map<std::int64_t, Place> places;
  places.reserve(pods.size());
  const auto& policy = jobset.spec.failurePolicy;
  const bool is_in_place = policy && policy->restartStrategy == "InPlaceRestart";
  std::int64_t ordinal = 0;
  for (const PodView* pod : pods) {
    ++ordinal;
    if (!pod || !is_pod_of(*pod, jobset)) continue;
    // Pods that restart in place keep the label of the attempt that made them.
    if (!is_in_place && pod->attempt < jobset.status.restarts) continue;
    const PodProgress progress = progress_of(*pod);
    facts.has_started =
        facts.has_started || progress >= PodProgress::kRunning || progress == PodProgress::kFailed;
    if (!pod->waiting_reason.empty() && !pod->is_deleting) facts.waiting.push_back(pod);
    const TrackedJob* job = tracked_jobs.find(pod->replicated_job);
    if (!job) continue;
    if (job->role == TrackedJob::Role::kInitializes && pod->phase == "Running")
      facts.is_initializer_running = true;
    if (is_awaited(*job, progress) && pod->phase == "Running") facts.earlier_step = job->name;
    if (job->role != TrackedJob::Role::kTrains) continue;
    // The Job has become smaller, and this pod ends.
    if (pod->index && *pod->index >= job->width) continue;
    Place& place = places[place_of(*pod, *job, ordinal)];
    if (progress <= PodProgress::kFailed || place.progress == PodProgress::kFailed)
      place.had_another = true;
    place.progress = std::max(place.progress, progress);
  }
  for (const auto& [number, place] : places) count_place(facts.nodes, place);
  return facts;
}

}  // namespace trainer
