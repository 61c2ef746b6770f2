#include "tests/unit/mpijob/mpijob_world.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"

namespace trainer::mpijob::test {
namespace {

using kube::Json;

constexpr std::string_view kPlain = R"(
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: m, namespace: ns, uid: uid-m, creationTimestamp: "2026-11-01T00:00:00Z"}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: main, image: i, command: [mpirun]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: main, image: i}]}}}
)";

Json yaml(std::string_view text) {
  auto parsed = kube::parse_yaml(text);
  REQUIRE(parsed);
  return std::move(*parsed);
}

// The controller makes the keys.
void add_keys(Json& secret) {
  secret["data"].set("ssh-privatekey", true).set("ssh-publickey", true);
}

}  // namespace

Json make_mpijob(std::string_view change) {
  Json job = yaml(kPlain);
  return change.empty() ? job : kube::merge_patch(std::move(job), yaml(change));
}

MPIJobWorld::MPIJobWorld(Json job, MPISettings of) : settings(std::move(of)) {
  objects["MPIJob/m"] = std::move(job);
  settle();
}

MPIJobPlan MPIJobWorld::reconcile() {
  const auto job = v1::read_job(at("MPIJob/m"), kReplicaSpecs);
  REQUIRE(job);
  MPIJobObserved observed{
      .job = *job, .objects = named, .relayed = relayed_, .settings = settings, .now = now};
  std::vector<std::shared_ptr<v1::V1PodView>> views;
  std::string launcher_uid;
  const auto child = [this](const kube::Resource& resource, const std::string& name) {
    const std::string key = resource.kind + "/" + name;
    if (!has(key)) return std::shared_ptr<const Json>();
    const auto seen =
        kube::parse_json(kube::print_json(at(key)), kube::kObjectLimits, seen_of_child(resource));
    REQUIRE(seen);
    return std::make_shared<const Json>(view_of_child(resource, *seen));
  };
  observed.launcher = child(kube::kJobs, "m-launcher");
  if (observed.launcher) launcher_uid = kube::ObjectMeta::of(at("Job/m-launcher")).uid;
  for (const auto& [key, object] : objects) {
    if (!key.starts_with("Pod/")) continue;
    views.push_back(v1::view_pod(object));
    auto& list = views.back()->owner_uid == launcher_uid ? observed.launchers : observed.workers;
    list.push_back(views.back().get());
  }
  observed.service = child(kube::kServices, "m");
  observed.config_map = child(kube::kConfigMaps, "m-config");
  observed.secret = child(kube::kSecrets, "m-ssh");
  if (has("PodGroup/m")) observed.pod_group = std::make_shared<const Json>(at("PodGroup/m"));
  observed.refusal = refusal ? &*refusal : nullptr;
  MPIJobPlan made = plan(observed);
  std::stable_sort(made.actions.begin(), made.actions.end(),
                   [](const auto& a, const auto& b) { return a.stage < b.stage; });
  for (const kube::Action& action : made.actions) run(action);
  if (made.status_patch) {
    ++writes;
    objects["MPIJob/m"] = kube::merge_patch(at("MPIJob/m"), *made.status_patch);
  }
  for (const kube::PlannedEvent& event : made.events)
    events.push_back(fmt::format("{} {}: {}", event.type, event.reason, event.message));
  relayed_ = made.relayed;
  return made;
}

void MPIJobWorld::run(const kube::Action& action) {
  ++writes;
  const std::string key = action.resource.kind + "/" + action.key.name;
  switch (action.verb) {
    case kube::Action::Verb::kCreate:
      REQUIRE_FALSE(has(key));
      objects[key] = action.body;
      objects[key]["metadata"].set("uid", fmt::format("uid-{}", ++uid_));
      if (action.resource.kind == "Pod") objects[key]["status"].set("phase", "Pending");
      if (action.resource.kind == "Secret") add_keys(objects[key]);
      break;
    case kube::Action::Verb::kMergePatch:
      REQUIRE(has(key));
      objects[key] = kube::merge_patch(at(key), action.body);
      if (action.resource.kind == "Secret") add_keys(objects[key]);
      break;
    case kube::Action::Verb::kDelete:
      CHECK(kube::ObjectMeta::of(at(key)).uid == action.uid);
      objects.erase(key);
      break;
    case kube::Action::Verb::kApply:
      FAIL("nothing is applied");
  }
}

void MPIJobWorld::settle() {
  for (int i = 0; i < 20; ++i) {
    const int before = writes;
    reconcile();
    if (writes == before) return;
  }
  FAIL("the plans do not come to an end");
}

void MPIJobWorld::change(std::string_view merge_patch) {
  objects["MPIJob/m"] = kube::merge_patch(at("MPIJob/m"), yaml(merge_patch));
  settle();
}

void MPIJobWorld::pod(const std::string& name, std::string_view phase, std::string_view reason,
                      std::string_view message) {
  Json& status = objects.at("Pod/" + name)["status"];
  status.set("phase", phase).set("reason", reason).set("message", message);
  status.set("conditions",
             Json::array({Json::object(
                 {{"type", "Ready"}, {"status", phase == "Running" ? "True" : "False"}})}));
  settle();
}

void MPIJobWorld::workers(std::string_view phase) {
  for (const char* name : {"m-worker-0", "m-worker-1"}) pod(name, phase);
}

void MPIJobWorld::launcher_pod(const std::string& name, std::string_view phase,
                               std::string_view reason, std::string_view message) {
  const auto owner = kube::ObjectMeta::of(at("Job/m-launcher"));
  Json& made = objects["Pod/" + name];
  made = at("Job/m-launcher").get("spec").get("template");
  made["metadata"]
      .set("name", name)
      .set("namespace", "ns")
      .set("uid", "uid-" + name)
      .set("creationTimestamp", now.to_string())
      .set("ownerReferences",
           Json::array({kube::OwnerReference{"batch/v1", "Job", owner.name, owner.uid, true, true}
                            .to_json()}));
  pod(name, phase, reason, message);
}

void MPIJobWorld::launcher_ends(std::string_view type, std::string_view reason,
                                std::string_view message) {
  objects.at("Job/m-launcher")["status"].set(
      "conditions",
      Json::array({Json::object(
          {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", message}})}));
  settle();
}

std::string MPIJobWorld::conditions() const {
  std::string text;
  for (const Json& each : at("MPIJob/m").get("status").get_array("conditions"))
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", each.get_string("type"),
                        each.get_string("status") == "True" ? "" : "!");
  return text;
}

std::string MPIJobWorld::counters(std::string_view role) const {
  const Json& all = at("MPIJob/m").get("status").get("replicaStatuses").get(role);
  std::string text;
  for (const char* name : {"active", "succeeded", "failed"})
    if (const auto count = all.get_int(name))
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", count, name);
  return text;
}

std::string MPIJobWorld::pods() const {
  std::string text;
  for (const auto& [key, object] : objects)
    if (key.starts_with("Pod/")) text += (text.empty() ? "" : " ") + key.substr(4);
  return text;
}

bool MPIJobWorld::has_event(std::string_view text) const {
  return std::ranges::any_of(
      events, [text](const std::string& event) { return event.find(text) != event.npos; });
}

}  // namespace trainer::mpijob::test
