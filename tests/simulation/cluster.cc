#include "tests/simulation/cluster.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tests/simulation/job_status.hh"

namespace trainer::simulation {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::ObjectMeta;

Json deletion(std::string_view propagation) {
  return Json::object({{"propagationPolicy", propagation}});
}

Json ended_container(int exit_code, const std::string& at) {
  Json ended = Json::object({{"exitCode", exit_code}, {"finishedAt", at}});
  ended.set("reason", exit_code == 0 ? "Completed" : "Error");
  Json container = Json::object({{"name", "node"}, {"restartCount", 0}, {"ready", false}});
  container.set("state", Json::object({{"terminated", std::move(ended)}}));
  return Json::array({std::move(container)});
}

Json ready_condition(bool value) {
  return Json::array({Json::object({{"type", "Ready"}, {"status", value ? "True" : "False"}})});
}

}  // namespace

Cluster::Cluster(Timeline& timeline, ApiStore& store, Chance chance, Decide decide)
    : timeline_(timeline),
      store_(store),
      collector_(store.kinds(), store.objects(), [&timeline] { return timeline.now(); }),
      chance_(std::move(chance)),
      decide_(std::move(decide)) {
  store_.subscribe([this](const Change& change) { on_change(change); });
}

void Cluster::on_change(const Change& change) {
  const bool is_leaving = !change.after || is_deleting(*change.after);
  // A child may also be born after its owner's end.
  if (is_leaving || !change.before) ask_for_collection();
  if (change.resource.kind == "Job" && change.after) ask_for_sync(change.key);
  if (change.resource.kind != "Pod") return;
  const Json& pod = change.after ? *change.after : *change.before;
  const auto meta = ObjectMeta::of(pod);
  if (const auto* owner = meta.controller()) ask_for_sync({meta.ns, owner->name});
  const bool was_leaving = change.before && is_deleting(*change.before);
  if (change.after && is_leaving && !was_leaving) {
    timeline_.after(chance_.wait(20, 3'000),
                    [this, key = change.key, uid = meta.uid] { kill_pod(key, uid); });
  }
}

// ---- the Job controller

void Cluster::ask_for_sync(const ObjectKey& job) {
  if (!asked_.insert(job).second) return;
  timeline_.after(chance_.wait(5, 80), [this, job] {
    asked_.erase(job);
    sync_job(job);
  });
}

std::vector<Object> Cluster::pods_of(const std::string& job_uid) const {
  std::vector<Object> pods;
  for (const auto& [key, pod] : store_.all("pods")) {
    const auto meta = ObjectMeta::of(*pod);
    const auto* owner = meta.controller();
    if (owner && owner->uid == job_uid) pods.push_back(pod);
  }
  return pods;
}

void Cluster::sync_job(const ObjectKey& key) {
  const Object job = store_.find("jobs", key);
  if (!job || is_deleting(*job) || is_job_finished(*job)) return;
  const auto uid = ObjectMeta::of(*job).uid;
  const auto pods = pods_of(uid);
  Tally& tally = tallies_[uid];
  for (const auto& pod : pods) {
    if (phase_of(*pod) == "Succeeded") tally.succeeded.insert(index_of(*pod));
    // One that was asked to go has not failed.
    if (phase_of(*pod) == "Failed" && !is_deleting(*pod)) {
      tally.failed.insert(ObjectMeta::of(*pod).uid);
    }
  }
  const JobCounts counts{static_cast<int>(tally.failed.size()),
                         static_cast<int>(tally.succeeded.size())};
  Json next = with_status(*job, pods, counts, timeline_.now());
  const bool is_decided = is_job_condition_true(next, "FailureTarget") ||
                          is_job_condition_true(next, "SuccessCriteriaMet");
  if (is_decided || next.find("spec")->get_bool("suspend")) {
    stop_pods(pods);
  } else {
    manage_pods(next, pods);
  }
  if (is_job_finished(next)) expire_job(next);
  store_.replace("jobs", std::move(next));
}

void Cluster::manage_pods(const Json& job, const std::vector<Object>& pods) {
  const auto& succeeded = tallies_[ObjectMeta::of(job).uid].succeeded;
  for (int index = 0; index < completions_of(job); ++index) {
    const bool is_there = std::any_of(pods.begin(), pods.end(), [index](const Object& pod) {
      return index_of(*pod) == index && !is_over(*pod) && !is_deleting(*pod);
    });
    if (!is_there && succeeded.count(index) == 0) create_pod(job, index);
  }
}

void Cluster::create_pod(const Json& job, int index) {
  const auto owner = ObjectMeta::of(job);
  const Json* labels = job.find_path({"spec", "template", "metadata", "labels"});
  Json metadata = Json::object({{"name", fmt::format("{}-{}-{:05}", owner.name, index, ++named_)}});
  metadata.set("namespace", owner.ns);
  metadata.set("labels", labels ? *labels : Json::object());
  metadata["labels"].set("batch.kubernetes.io/job-completion-index", std::to_string(index));
  kube::OwnerReference reference;
  reference.api_version = "batch/v1";
  reference.kind = "Job";
  reference.name = owner.name;
  reference.uid = owner.uid;
  reference.controller = true;
  reference.block_owner_deletion = true;
  metadata.set("ownerReferences", Json::array({reference.to_json()}));
  Json pod = Json::object({{"metadata", std::move(metadata)}, {"spec", Json::object()}});
  const Answer made = store_.create(Actor::kCluster, *store_.find_kind("pods"), std::move(pod));
  const auto meta = ObjectMeta::of(made.body);
  const int failures = static_cast<int>(tallies_[owner.uid].failed.size());
  const Fate fate = decide_(made.body, failures);
  timeline_.after(fate.until_running,
                  [this, key = meta.key(), uid = meta.uid, fate] { start_pod(key, uid, fate); });
}

void Cluster::stop_pods(const std::vector<Object>& pods) {
  for (const auto& pod : pods) {
    if (is_over(*pod) || is_deleting(*pod)) continue;
    store_.remove(Actor::kCluster, *store_.find_kind("pods"), ObjectMeta::of(*pod).key(), {});
  }
}

void Cluster::expire_job(const Json& job) {
  const Json* ttl = job.find("spec")->find("ttlSecondsAfterFinished");
  if (!ttl) return;
  const auto meta = ObjectMeta::of(job);
  timeline_.after(seconds(ttl->as_int()), [this, key = meta.key(), uid = meta.uid] {
    Json options = deletion("Foreground");
    options.set("preconditions", Json::object({{"uid", uid}}));
    store_.remove(Actor::kCluster, *store_.find_kind("jobs"), key, options);
  });
}

// ---- the kubelet

Object Cluster::live_pod(const ObjectKey& key, const std::string& uid) const {
  const Object pod = store_.find("pods", key);
  const bool is_live =
      pod && ObjectMeta::of(*pod).uid == uid && !is_over(*pod) && !is_deleting(*pod);
  return is_live ? pod : nullptr;
}

void Cluster::start_pod(const ObjectKey& key, const std::string& uid, Fate fate) {
  const Object pod = live_pod(key, uid);
  if (!pod) return;
  Json running = *pod;
  running["spec"].set("nodeName", "machine");
  Json container = Json::object({{"name", "node"}, {"restartCount", 0}, {"ready", false}});
  container.set("state", Json::object({{"running", Json::object()}}));
  Json& status = running["status"];
  status = Json::object({{"phase", "Running"}});
  status.set("containerStatuses", Json::array({std::move(container)}));
  status.set("conditions", ready_condition(false));
  store_.replace("pods", std::move(running));
  timeline_.after(fate.until_ready, [this, key, uid] {
    const Object started = live_pod(key, uid);
    if (!started) return;
    Json ready = *started;
    ready["status"].set("conditions", ready_condition(true));
    store_.replace("pods", std::move(ready));
  });
  if (!fate.until_end) return;
  timeline_.after(*fate.until_end, [this, key, uid, code = fate.exit_code] {
    if (live_pod(key, uid)) end_pod(key, uid, code);
  });
}

void Cluster::end_pod(const ObjectKey& key, const std::string& uid, int exit_code) {
  const Object pod = store_.find("pods", key);
  if (!pod || ObjectMeta::of(*pod).uid != uid || is_over(*pod)) return;
  Json ended = *pod;
  Json& status = ended["status"];
  status = Json::object({{"phase", exit_code == 0 ? "Succeeded" : "Failed"}});
  status.set("containerStatuses", ended_container(exit_code, timeline_.now().to_string()));
  status.set("conditions", ready_condition(false));
  store_.replace("pods", std::move(ended));
}

void Cluster::kill_pod(const ObjectKey& key, const std::string& uid) {
  const Object pod = store_.find("pods", key);
  if (!pod || ObjectMeta::of(*pod).uid != uid) return;
  // Some are seen as failed before they are gone.
  if (chance_.percent(50)) end_pod(key, uid, 137);
  store_.erase(Actor::kCluster, "pods", key);
}

// ---- the garbage collector

void Cluster::ask_for_collection() {
  if (std::exchange(is_collection_asked_, true)) return;
  timeline_.after(chance_.wait(10, 300), [this] {
    is_collection_asked_ = false;
    collector_.step();
    if (collector_.has_work()) ask_for_collection();
  });
}

}  // namespace trainer::simulation
