#include "controller/core/stores.hh"

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

namespace {

auto keep(const kube::Resource& resource, kube::TextCompressor* compressor = nullptr) {
  return [resource, compressor](std::string_view text) {
    return transform_stored(text, resource, compressor);
  };
}

// What moves a leader is told by few of its events; the others cost nothing.
bool has_moved(const PodView& before, const PodView& after) {
  return !before.is_exclusive_leader || before.uid != after.uid ||
         before.node_name != after.node_name || before.phase != after.phase ||
         before.is_ready != after.is_ready;
}

// Most of what the cluster writes to a Pod or a Job, such as addresses, changes nothing we look at.
template <class View>
bool is_seen_already(const std::shared_ptr<const View>& before,
                     const std::shared_ptr<const View>& after) {
  if (!before || !after) return false;
  View last = *before;
  last.resource_version = after->resource_version;
  return last == *after;
}

template <class Index>
std::vector<const JobView*> views_of(const Index& index, const std::string& owner_uid) {
  std::vector<const JobView*> found;
  const auto at = index.find(owner_uid);
  if (at == index.end()) return found;
  found.reserve(at->second.size());
  for (const auto& [name, job] : at->second) found.push_back(job.get());
  return found;
}

}  // namespace

Stores::Stores(Listeners listeners)
    : trainjobs(keep(kTrainJobs, &trainjob_compressor_),
                [this](auto& b, auto& a) { trainjob_changed(b, a); }),
      training_runtimes(keep(kTrainingRuntimes),
                        [this](auto&, auto&) { listeners_.runtimes_changed(); }),
      cluster_runtimes(keep(kClusterTrainingRuntimes),
                       [this](auto&, auto&) { listeners_.runtimes_changed(); }),
      jobsets(keep(kJobSets, &jobset_compressor_),
              [this](auto& b, auto& a) { jobset_changed(b, a); }),
      services([](std::string_view text) { return transform_owner(text); },
               [this](auto& before, auto& after) {
                 const auto& any = after ? after : before;
                 const auto at = jobset_by_uid_.find(any->controller_uid);
                 // One that we made needs nothing; one that vanished must be made again.
                 if (at != jobset_by_uid_.end() && !after)
                   listeners_.jobset(at->second, Debounce::kNone);
               }),
      jobs([](std::string_view text) { return transform_job(text); },
           [this](auto& b, auto& a) { job_changed(b, a); }),
      pods([](std::string_view text) { return transform_pod(text); },
           [this](auto& b, auto& a) { pod_changed(b, a); }),
      listeners_(std::move(listeners)) {}

bool Stores::are_synced() const {
  return trainjobs.is_synced() && training_runtimes.is_synced() && cluster_runtimes.is_synced() &&
         jobsets.is_synced() && services.is_synced() && jobs.is_synced() && pods.is_synced();
}

std::vector<const JobView*> Stores::jobs_of(const std::string& jobset_uid) const {
  return views_of(jobs_by_owner_, jobset_uid);
}

std::vector<const JobView*> Stores::removed_jobs_of(const std::string& jobset_uid) const {
  return views_of(removed_by_owner_, jobset_uid);
}

std::vector<const PodView*> Stores::pods_of(const kube::ObjectKey& jobset) const {
  std::vector<const PodView*> found;
  const auto at = pods_by_jobset_.find(jobset);
  if (at == pods_by_jobset_.end()) return found;
  found.reserve(at->second.size());
  for (const auto& [name, pod] : at->second) found.push_back(pod.get());
  return found;
}

void Stores::update_if_newer(const kube::Resource& resource, std::string_view answer) {
  // A delete answers what still stands, with its deletionTimestamp, or what stood last, or a
  // Status; the watch tells which.
  if (kube::scan_string(answer, "kind") != resource.kind) return;
  if (resource == kTrainJobs) {
    if (auto stored = transform_stored(answer, resource, &trainjob_compressor_))
      trainjobs.update_if_newer(std::move(stored));
  } else if (resource == kJobSets) {
    if (auto stored = transform_stored(answer, resource, &jobset_compressor_))
      jobsets.update_if_newer(std::move(stored));
  } else if (resource == kube::kJobs) {
    if (auto view = transform_job(answer)) jobs.update_if_newer(std::move(view));
  } else if (resource == kube::kServices) {
    if (auto stored = transform_owner(answer)) services.update_if_newer(std::move(stored));
  }
}

std::shared_ptr<Stores::StatusUnderWay> Stores::expect_status(const kube::Resource& resource,
                                                              const kube::ObjectKey& key) {
  auto sent = std::make_shared<StatusUnderWay>(StatusUnderWay{resource, key, {}});
  expected_of(resource)[key] = sent;
  return sent;
}

void Stores::offer_status(const StatusUnderWay& sent, std::string_view answer, bool is_minor) {
  writer_ = is_minor ? Writer::kOurCounters : Writer::kOurStatus;
  update_if_newer(sent.resource, answer);
  tell_noted(sent, kube::scan_identity(answer).version);
  writer_ = Writer::kOthers;
}

void Stores::give_up_status(const StatusUnderWay& sent) {
  tell_noted(sent, "");
}

Stores::Expected& Stores::expected_of(const kube::Resource& resource) {
  return resource == kJobSets ? expected_jobsets_ : expected_trainjobs_;
}

bool Stores::has_noted(const Expected& expected, const std::shared_ptr<const StoredObject>& before,
                       const std::shared_ptr<const StoredObject>& after) const {
  if (writer_ != Writer::kOthers || !before || !after || before->uid != after->uid) return false;
  const auto at = expected.find(after->object_key);
  const auto sent = at == expected.end() ? nullptr : at->second.lock();
  if (sent) sent->versions.push_back(after->resource_version);
  return sent != nullptr;
}

void Stores::tell_noted(const StatusUnderWay& sent, std::string_view written_version) {
  expected_of(sent.resource).erase(sent.object_key);
  if (sent.versions.empty()) return;
  // A status is written only to the version it was planned from: nothing came before it.
  const bool is_ours = sent.versions.size() == 1 && sent.versions.front() == written_version;
  const auto debounce = is_ours ? debounce_of_change() : Debounce::kNone;
  if (!debounce) return;
  if (sent.resource == kJobSets) {
    listeners_.jobset(sent.object_key, *debounce);
  } else {
    listeners_.trainjob(sent.object_key, *debounce);
  }
}

std::optional<Stores::Debounce> Stores::debounce_of_change() const {
  switch (writer_) {
    case Writer::kOurCounters:
      return std::nullopt;
    case Writer::kOurStatus:
      return Debounce::kShort;
    case Writer::kOthers:
      break;
  }
  return Debounce::kNone;
}

void Stores::trainjob_changed(const std::shared_ptr<const StoredObject>& before,
                              const std::shared_ptr<const StoredObject>& after) {
  if (before && (!after || after->uid != before->uid)) listeners_.trainjob_gone(before->uid);
  if (has_noted(expected_trainjobs_, before, after)) return;
  if (const auto debounce = debounce_of_change())
    listeners_.trainjob((after ? after : before)->object_key, *debounce);
}

void Stores::jobset_changed(const std::shared_ptr<const StoredObject>& before,
                            const std::shared_ptr<const StoredObject>& after) {
  if (before && (!after || after->uid != before->uid)) {
    jobset_by_uid_.erase(before->uid);
    removed_by_owner_.erase(before->uid);
    listeners_.jobset_gone(*before);
  }
  if (after) jobset_by_uid_[after->uid] = after->object_key;
  const auto& key = (after ? after : before)->object_key;
  const auto debounce = debounce_of_change();
  if (debounce && !has_noted(expected_jobsets_, before, after)) listeners_.jobset(key, *debounce);
  // The TrainJob of this name: its owner, or one that must be told that the name is taken.
  if (!trainjobs.find(key)) return;
  const bool is_counted = after && (!before || writer_ == Writer::kOurCounters);
  listeners_.trainjob(key, is_counted ? Debounce::kCounters
                           : after    ? Debounce::kShort
                                      : Debounce::kNone);
}

void Stores::job_changed(const std::shared_ptr<const JobView>& before,
                         const std::shared_ptr<const JobView>& after) {
  if (before && (!after || after->owner_uid != before->owner_uid)) {
    const auto at = jobs_by_owner_.find(before->owner_uid);
    if (at != jobs_by_owner_.end()) {
      at->second.erase(before->name);
      if (at->second.empty()) jobs_by_owner_.erase(at);
    }
  }
  const auto& any = after ? after : before;
  if (any->owner_uid.empty()) return;
  if (after) jobs_by_owner_[after->owner_uid][after->name] = after;
  if (is_seen_already(before, after)) return;
  const auto at = jobset_by_uid_.find(any->owner_uid);
  if (at == jobset_by_uid_.end()) return;
  if (!after && before->is_complete()) removed_by_owner_[before->owner_uid][before->name] = before;
  const bool has_ended = after && (after->finished || after->failure_target);
  listeners_.jobset(at->second, !after || has_ended ? Debounce::kNone : Debounce::kCounters);
}

void Stores::pod_changed(const std::shared_ptr<const PodView>& before,
                         const std::shared_ptr<const PodView>& after) {
  if (before && (!after || after->jobset != before->jobset)) {
    const auto at = pods_by_jobset_.find({before->ns, before->jobset});
    if (at != pods_by_jobset_.end()) {
      at->second.erase(before->name);
      if (at->second.empty()) pods_by_jobset_.erase(at);
    }
  }
  if (after && after->is_exclusive_leader && (!before || has_moved(*before, *after))) {
    listeners_.leader(after->key());
  }
  const auto& any = after ? after : before;
  if (any->jobset.empty()) return;
  const kube::ObjectKey key{any->ns, any->jobset};
  if (after) pods_by_jobset_[key][after->name] = after;
  if (is_seen_already(before, after)) return;
  if (trainjobs.find(key)) listeners_.trainjob(key, Debounce::kCounters);
  // What the agents of in-place restarts write is for the expander; nothing else tells it. Nor that
  // containers begin again inside their pod.
  const bool has_agent = (before && before->in_place_attempt) || (after && after->in_place_attempt);
  const bool has_restarted = after && after->restart_count > (before ? before->restart_count : 0);
  if (has_agent || has_restarted) listeners_.jobset(key, Debounce::kShort);
}

}  // namespace trainer
