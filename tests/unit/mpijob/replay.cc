#include "tests/unit/mpijob/replay.hh"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/schema/structural_schema.hh"
#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "tests/support/catch.hh"

namespace trainer::mpijob::test {
namespace {

using kube::Json;

std::string name_in(const std::string& key) {
  return key.substr(key.find('/') + 1);
}

std::string kind_in(const std::string& key) {
  return key.substr(0, key.find('/'));
}

std::string uid_of(const Json& object) {
  return kube::ObjectMeta::of(object).uid;
}

}  // namespace

Replay::Replay(std::string ns, MPISettings settings)
    : ns_(std::move(ns)), settings_(std::move(settings)) {}

bool Replay::apply(Json object) {
  const std::string kind(object.get_string("kind"));
  const std::string key = kind + "/" + kube::ObjectMeta::of(object).name;
  if (kind == "MPIJob") {
    static const wire::Schema kSchema = crd_version().make_schema();
    apply_schema_defaults(object, kSchema);
    if (!check_schema(object, kSchema).empty()) return false;
  }
  object["metadata"].set("namespace", ns_);
  if (const auto at = objects.find(key); at != objects.end()) {
    object["metadata"].set("uid", uid_of(at->second));
    object.set("status", at->second.get("status"));
  } else {
    object["metadata"]
        .set("uid", fmt::format("uid-{}", ++version_))
        .set("creationTimestamp", now_.to_string());
    if (kind == "Pod") object["status"].set("phase", "Pending");
  }
  objects[key] = std::move(object);
  settle();
  return true;
}

bool Replay::patch(const std::string& key, const Json& body, bool is_merge) {
  REQUIRE(objects.contains(key));
  Json changed = objects.at(key);
  if (is_merge) {
    changed = kube::merge_patch(std::move(changed), body);
  } else {
    auto patched = kube::apply_json_patch(changed, body);
    REQUIRE(patched);
    changed = std::move(*patched);
  }
  if (kind_in(key) == "MPIJob") return apply(std::move(changed));
  objects[key] = std::move(changed);
  settle();
  return true;
}

// A pod without a machine ends at once, unless something holds it.
void Replay::remove(const std::string& key) {
  objects.at(key)["metadata"].set("deletionTimestamp", now_.to_string());
  settle();
}

void Replay::advance(int seconds) {
  now_ = now_.after(seconds);
  settle();
}

std::string Replay::find(const std::string& key) const {
  if (!key.ends_with("*")) return objects.contains(key) ? key : std::string();
  std::string newest;
  int newest_uid = -1;
  for (const auto& [each, object] : objects) {
    const int uid = std::stoi(uid_of(object).substr(4));
    const bool is_deleting = object.get("metadata").find("deletionTimestamp") != nullptr;
    if (!each.starts_with(key.substr(0, key.size() - 1)) || is_deleting || uid < newest_uid)
      continue;
    newest = each;
    newest_uid = uid;
  }
  return newest;
}

std::map<std::string, Json> Replay::shown(const std::string& kind) const {
  std::map<std::string, Json> named;
  std::map<std::string, int> counts;
  for (const auto& [key, object] : objects) {
    if (kind_in(key) != kind) continue;
    std::string name = name_in(key);
    // The endings of such names grow, see reconcile_job().
    const auto meta = kube::ObjectMeta::of(object);
    if (const auto* owner = meta.controller(); owner && owner->kind == "Job")
      name = fmt::format("{}-<{}>", owner->name, counts[owner->name]++);
    named[name] = object;
    named[name]["metadata"].set("name", name);
  }
  return named;
}

void Replay::settle() {
  for (int round = 0; round < 40; ++round) {
    const auto before = objects;
    std::vector<std::string> keys;
    for (const auto& [key, object] : objects) keys.push_back(key);
    for (const std::string& key : keys) {
      collect();
      if (!objects.contains(key)) continue;
      if (kind_in(key) == "MPIJob") reconcile_mpijob(key);
      if (kind_in(key) == "Job") reconcile_job(key);
    }
    collect();
    if (objects == before) return;
  }
  FAIL("the plans do not come to an end");
}

// Objects whose owner is gone are removed, and deleted ones that nothing holds.
void Replay::collect() {
  for (bool is_changed = true; is_changed;) {
    std::set<std::string> uids;
    for (const auto& [key, object] : objects) uids.insert(uid_of(object));
    is_changed = std::erase_if(objects, [&uids](const auto& item) {
                   const auto meta = kube::ObjectMeta::of(item.second);
                   const auto* const owner = meta.controller();
                   const bool is_held =
                       !item.second.get("metadata").get_array("finalizers").empty();
                   return (owner && !uids.contains(owner->uid) && !is_held) ||
                          (meta.deletion_timestamp && !is_held);
                 }) > 0;
    // Pods of a Job that is gone lose the finalizer by the Job controller.
    for (auto& [key, object] : objects) {
      const auto meta = kube::ObjectMeta::of(object);
      const auto* const owner = meta.controller();
      if (owner && !uids.contains(owner->uid) && object["metadata"].find("finalizers")) {
        object["metadata"].erase("finalizers");
        is_changed = true;
      }
    }
  }
}

Json Replay::child(const kube::Resource& resource, const std::string& name,
                   const std::string& uid) const {
  const auto at = objects.find(resource.kind + "/" + name);
  if (at == objects.end()) return {};
  const auto meta = kube::ObjectMeta::of(at->second);
  const auto* const owner = meta.controller();
  return owner && owner->uid == uid ? at->second : Json();
}

void Replay::reconcile_mpijob(const std::string& key) {
  const auto job = v1::read_job(objects.at(key), kReplicaSpecs);
  REQUIRE(job);
  const std::string& name = job->metadata.name;
  Memory& memory = memory_[key];
  MPIJobObserved observed{
      .job = *job, .objects = none_, .relayed = memory.relayed, .settings = settings_, .now = now_};
  const auto view = [&](const kube::Resource& resource, const std::string& of) {
    Json found = child(resource, of, job->metadata.uid);
    return found.is_null() ? nullptr : std::make_shared<const Json>(view_of_child(resource, found));
  };
  std::vector<std::shared_ptr<v1::V1PodView>> views;
  const Json launcher = child(kube::kJobs, launcher_name(name), job->metadata.uid);
  for (const auto& [each, object] : objects) {
    if (kind_in(each) != "Pod") continue;
    views.push_back(v1::view_pod(object));
    if (views.back()->owner_uid == job->metadata.uid)
      observed.workers.push_back(views.back().get());
    else if (!launcher.is_null() && views.back()->owner_uid == uid_of(launcher))
      observed.launchers.push_back(views.back().get());
  }
  observed.launcher = view(kube::kJobs, launcher_name(name));
  observed.service = view(kube::kServices, name);
  observed.config_map = view(kube::kConfigMaps, name + "-config");
  observed.secret = view(kube::kSecrets, name + "-ssh");
  if (const kube::Resource* groups = pod_groups_of(settings_))
    if (Json group = child(*groups, name, job->metadata.uid); !group.is_null())
      observed.pod_group = std::make_shared<const Json>(std::move(group));
  observed.refusal = memory.refusal ? &*memory.refusal : nullptr;
  MPIJobPlan made = plan(observed);
  if (!made.needs_objects.empty()) {
    for (const auto& [resource, needed] : made.needs_objects)
      none_.set({resource, needed}, kube::ReadObject{});
    return reconcile_mpijob(key);
  }
  memory.relayed = made.relayed;
  for (const std::size_t index : made.ssh_key_actions)
    made.actions[index].body["data"].set("ssh-privatekey", "k").set("ssh-publickey", "k");
  run(made, key);
}

void Replay::reconcile_job(const std::string& key) {
  std::vector<std::shared_ptr<batch::BatchPodView>> views;
  for (const auto& [each, object] : objects)
    if (kind_in(each) == "Pod") views.push_back(batch::view_pod(object));
  const batch::BatchJob job = batch::read_job(std::make_shared<const Json>(objects.at(key)));
  batch::Observed observed;
  observed.job = &job;
  for (const auto& view : views)
    if (view->job == name_in(key)) observed.pods.push_back(view.get());
  observed.backoff = memory_[key].backoff;
  observed.new_suffix = [this] { return fmt::format("{:05}", ++version_); };
  observed.now = now_;
  const batch::BatchJobPlan made = batch::plan(observed);
  memory_[key].backoff = made.backoff;
  run(made, key);
}

void Replay::run(const kube::Plan& plan, const std::string& key) {
  Memory& memory = memory_[key];
  const auto write_status = [&] {
    if (plan.status_patch) objects[key] = kube::merge_patch(objects.at(key), *plan.status_patch);
  };
  if (plan.is_status_first()) write_status();
  std::vector<kube::Action> actions = plan.actions;
  std::ranges::stable_sort(actions, {}, &kube::Action::stage);
  memory.refusal.reset();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (i > 0 && memory.refusal && actions[i].stage > actions[i - 1].stage) break;
    if (!act(actions[i], memory)) continue;
  }
  if (!plan.is_status_first() && objects.contains(key)) write_status();
  for (const kube::PlannedEvent& event : plan.events)
    events.insert(fmt::format("{} {}: {} {}: {}", kind_in(key), name_in(key), event.type,
                              event.reason, event.message));
}

bool Replay::act(const kube::Action& action, Memory& memory) {
  const std::string key = action.resource.kind + "/" + action.key.name;
  if (action.verb == kube::Action::Verb::kCreate) {
    if (objects.contains(key)) {
      memory.refusal = kube::Refusal{action.resource, "it exists", kube::ErrorCode::kAlreadyExists,
                                     action.key.name};
      return false;
    }
    Json made = action.body;
    made.set("kind", action.resource.kind);
    made["metadata"]
        .set("namespace", ns_)
        .set("name", action.key.name)
        .set("uid", fmt::format("uid-{}", ++version_))
        .set("creationTimestamp", now_.to_string());
    if (action.resource.kind == "Pod") made["status"].set("phase", "Pending");
    objects[key] = std::move(made);
    return true;
  }
  if (!objects.contains(key)) return true;
  if (action.verb == kube::Action::Verb::kDelete)
    objects.at(key)["metadata"].set("deletionTimestamp", now_.to_string());
  else
    objects[key] = kube::merge_patch(objects.at(key), action.body);
  return true;
}

}  // namespace trainer::mpijob::test
