#include "tests/simulation/cluster.hh"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tests/simulation/job_status.hh"

namespace trainer::simulation {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::ObjectMeta;

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
  // A child may also be created after its owner's end.
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

void Cluster::sync_job(const ObjectKey& key) {
  std::vector<std::shared_ptr<batch::BatchPodView>> views;
  batch::Observed observed;
  for (const auto& [name, pod] : store_.all("pods")) {
    if (name.ns != key.ns) continue;
    auto view = batch::view_pod(*pod.get());
    if (view->job != key.name) continue;
    observed.pods.push_back(view.get());
    views.push_back(std::move(view));
  }
  const Object object = store_.find("jobs", key);
  std::optional<batch::BatchJob> job;
  if (object) {
    job = batch::read_job(object);
    observed.job = &*job;
    observed.backoff = backoffs_[job->metadata.uid];
  }
  observed.new_suffix = [this] { return fmt::format("{:05}", ++named_); };
  observed.now = timeline_.now().whole_seconds();
  batch::BatchJobPlan plan = batch::plan(observed);
  if (job) backoffs_[job->metadata.uid] = std::move(plan.backoff);
  run(key, std::move(plan));
}

void Cluster::run(const ObjectKey& job, kube::Plan plan) {
  const auto& jobs = *store_.find_kind("jobs");
  const auto write_status = [&] {
    if (plan.status_patch) store_.merge(Actor::kCluster, jobs, job, *plan.status_patch, "status");
  };
  if (plan.is_status_first()) write_status();
  std::stable_sort(plan.actions.begin(), plan.actions.end(),
                   [](const auto& a, const auto& b) { return a.stage < b.stage; });
  for (const kube::Action& action : plan.actions) act(action);
  if (!plan.is_status_first()) write_status();
  if (plan.requeue_after) timeline_.after(*plan.requeue_after, [this, job] { ask_for_sync(job); });
}

void Cluster::act(const kube::Action& action) {
  switch (action.verb) {
    case kube::Action::Verb::kCreate:
      return create_pod(action);
    case kube::Action::Verb::kDelete: {
      Json options = Json::object({{"preconditions", Json::object({{"uid", action.uid}})}});
      if (!action.propagation.empty()) options.set("propagationPolicy", action.propagation);
      store_.remove(Actor::kCluster, action.resource, action.key, options);
      return;
    }
    case kube::Action::Verb::kMergePatch:
      store_.merge(Actor::kCluster, action.resource, action.key, action.body, "");
      return;
    case kube::Action::Verb::kApply:
      return;  // the Job controller applies nothing
  }
}

void Cluster::create_pod(const kube::Action& action) {
  const Answer made = store_.create(Actor::kCluster, action.resource, action.body);
  if (!made.is_ok()) return;
  const auto meta = ObjectMeta::of(made.body);
  const Object job = store_.find("jobs", {meta.ns, meta.controller()->name});
  const Json& status = job->get("status");
  const std::size_t uncounted = status.get("uncountedTerminatedPods").get_array("failed").size();
  const int failures = static_cast<int>(status.get_int("failed")) + static_cast<int>(uncounted);
  const Fate fate = decide_(made.body, failures);
  timeline_.after(fate.until_running,
                  [this, key = meta.key(), uid = meta.uid, fate] { start_pod(key, uid, fate); });
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
  // Some pods are seen as failed before they are gone. One with a finalizer is removed with that.
  if (!ObjectMeta::of(*pod).finalizers.empty() || chance_.percent(50)) end_pod(key, uid, 137);
  store_.remove(Actor::kCluster, *store_.find_kind("pods"), key,
                Json::object({{"gracePeriodSeconds", 0}}));
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
