#include "runtimes/trainjob/nodes.hh"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

namespace trainer {
namespace {

constexpr std::string_view kNode = "node";
constexpr std::string_view kTrainerStep = "trainer";

std::string_view ancestor_of(const ReplicatedJob& job) {
  const kube::Json* labels = job.template_.find_path({"metadata", "labels"});
  return labels ? labels->get_string(kAncestorLabel) : std::string_view();
}

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

// One replicated job with its role and the first number of its places.
struct Lane {
  std::string_view name;
  enum class Role { kTrains, kInitializes, kOther } role = Role::kOther;
  std::int64_t first = 0;
  std::int64_t width = 1;   // pods a Job
  std::int64_t places = 0;  // pods of all its Jobs
};

struct Lanes {
  std::vector<Lane> all;
  std::int64_t total = 0;

  const Lane* find(std::string_view name) const {
    for (const Lane& lane : all) {
      if (lane.name == name) return &lane;
    }
    return nullptr;
  }

  // Numbers the places. Where no job is marked as training, all but the initializers train.
  void settle() {
    const bool is_marked = std::any_of(
        all.begin(), all.end(), [](const Lane& lane) { return lane.role == Lane::Role::kTrains; });
    for (Lane& lane : all) {
      if (!is_marked && lane.role == Lane::Role::kOther) lane.role = Lane::Role::kTrains;
      if (lane.role != Lane::Role::kTrains) continue;
      lane.first = total;
      total += lane.places;
    }
  }
};

std::int64_t places_of(const ReplicatedJob& job) {
  return pods_of(job) * std::max(job.replica_count(), 0);
}

// A job named `node` beside the one with the trainer label is what MPI runtimes look like: the
// labelled one launches. It trains as well where runLauncherAsNode is set, which the JobSet does
// not show but the number of nodes does.
Lanes lanes_of(const JobSet& jobset, std::int32_t known_total) {
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

  Lanes lanes;
  for (const ReplicatedJob& job : jobset.spec.replicatedJobs) {
    Lane lane;
    lane.name = job.name;
    lane.width = pods_of(job);
    lane.places = places_of(job);
    const std::string_view ancestor = ancestor_of(job);
    if (is_initializer(ancestor)) {
      lane.role = Lane::Role::kInitializes;
    } else if (job.name == kNode || (ancestor == kTrainerStep && !launches_only)) {
      lane.role = Lane::Role::kTrains;
    }
    lanes.all.push_back(lane);
  }
  lanes.settle();
  return lanes;
}

// Pods without an index (completionMode NonIndexed) have a place each, counted down from -1.
std::int64_t place_of(const TrainPodView& pod, const Lane& lane, std::int64_t ordinal) {
  if (!pod.index) return -1 - ordinal;
  std::int32_t job_index = 0;
  std::from_chars(pod.job_index.data(), pod.job_index.data() + pod.job_index.size(), job_index);
  return lane.first + job_index * lane.width + *pod.index;
}

// How far a pod got; of several pods of one place the furthest stands for it.
enum class Standing { kGone, kFailed, kUnscheduled, kScheduled, kRunning, kReady };

Standing standing_of(const TrainPodView& pod) {
  if (pod.phase == "Failed") return Standing::kFailed;
  // Told to end, as by an eviction, it may well end with 0: that is no node of the next admission.
  if (pod.is_deleting) return Standing::kGone;
  if (pod.phase == "Succeeded") return Standing::kReady;
  if (pod.phase == "Running") return pod.is_ready ? Standing::kReady : Standing::kRunning;
  return pod.machine.empty() ? Standing::kUnscheduled : Standing::kScheduled;
}

struct Place {
  Standing standing = Standing::kGone;
  bool had_another = false;  // a pod of this place has ended or is ending
};

void count_place(NodeCounts& counts, const Place& place) {
  const Standing s = place.standing;
  if (s == Standing::kGone) return;
  if (s == Standing::kFailed) {
    ++counts.failed;
    return;
  }
  ++counts.created;
  if (s >= Standing::kScheduled) ++counts.scheduled;
  if (s >= Standing::kRunning) ++counts.running;
  if (s == Standing::kReady) ++counts.ready;
  if (place.had_another && s < Standing::kRunning) ++counts.replaced;
}

void survey_initializers(PodFacts& facts, const JobSet& jobset, const Lanes& lanes) {
  for (const Lane& lane : lanes.all) {
    if (lane.role != Lane::Role::kInitializes) continue;
    facts.has_initializers = true;
    const auto status = std::find_if(
        jobset.status.replicatedJobsStatus.begin(), jobset.status.replicatedJobsStatus.end(),
        [&lane](const ReplicatedJobStatus& s) { return s.name == lane.name; });
    if (status == jobset.status.replicatedJobsStatus.end() || status->succeeded == 0)
      facts.are_initializers_done = false;
  }
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

bool is_pod_of(const TrainPodView& pod, const JobSet& jobset) {
  return pod.jobset_uid.empty() || jobset.metadata.uid.empty() ||
         pod.jobset_uid == jobset.metadata.uid;
}

PodFacts survey_pods(const JobSet& jobset, const std::vector<const TrainPodView*>& pods,
                     std::int32_t known_total) {
  const Lanes lanes = lanes_of(jobset, known_total);
  PodFacts facts;
  facts.nodes.total = to_count(lanes.total);
  survey_initializers(facts, jobset, lanes);

  std::unordered_map<std::int64_t, Place> places;
  places.reserve(pods.size());
  const auto& policy = jobset.spec.failurePolicy;
  const bool is_in_place = policy && policy->restartStrategy == "InPlaceRestart";
  std::int64_t ordinal = 0;
  for (const TrainPodView* pod : pods) {
    ++ordinal;
    if (!pod || !is_pod_of(*pod, jobset)) continue;
    // Pods that restart in place keep the label of the attempt that made them.
    if (!is_in_place && pod->attempt < jobset.status.restarts) continue;
    const Standing standing = standing_of(*pod);
    facts.has_started =
        facts.has_started || standing >= Standing::kRunning || standing == Standing::kFailed;
    if (!pod->waiting_reason.empty() && !pod->is_deleting) facts.waiting.push_back(pod);
    const Lane* lane = lanes.find(pod->replicated_job);
    if (!lane) continue;
    if (lane->role == Lane::Role::kInitializes && pod->phase == "Running")
      facts.is_initializer_running = true;
    if (lane->role != Lane::Role::kTrains) continue;
    Place& place = places[place_of(*pod, *lane, ordinal)];
    if (standing <= Standing::kFailed || place.standing == Standing::kFailed)
      place.had_another = true;
    place.standing = std::max(place.standing, standing);
  }
  for (const auto& [number, place] : places) count_place(facts.nodes, place);
  return facts;
}

}  // namespace trainer
