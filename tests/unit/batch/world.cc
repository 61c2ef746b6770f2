#include "tests/unit/batch/world.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/merge_patch.hh"

namespace trainer::batch::test {

using kube::Json;

Json yaml(std::string_view text) {
  auto value = kube::parse_yaml(text);
  INFO(text);
  REQUIRE(value.has_value());
  return *value;
}

Json with(Json object, std::string_view more) {
  return kube::test::merge_patch(std::move(object), yaml(more));
}

World::World(std::string_view spec) {
  job = yaml(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, uid: job-uid},"
      " spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}");
  job["spec"] = with(job["spec"], spec);
  settle();
}

BatchJobPlan World::reconcile() {
  std::vector<std::shared_ptr<BatchPodView>> views;
  for (const auto& [name, pod] : all_pods) views.push_back(transform_pod(kube::print_json(pod)));
  Observed observed;
  for (const auto& view : views) observed.pods.push_back(view.get());
  const BatchJob read = read_job(std::make_shared<const Json>(job));
  observed.job = job.is_null() ? nullptr : &read;
  observed.backoff = backoff_;
  observed.new_suffix = [this] { return fmt::format("{:05}", ++version_); };
  observed.now = now;
  BatchJobPlan made = plan(observed);
  backoff_ = made.backoff;

  if (made.is_status_first()) write_status(made);
  std::stable_sort(made.actions.begin(), made.actions.end(),
                   [](const auto& a, const auto& b) { return a.stage < b.stage; });
  bool has_failed = false;
  int failed_stage = 0;
  for (const kube::Action& action : made.actions) {
    if (has_failed && action.stage > failed_stage) break;
    if (act(action)) continue;
    has_failed = true;
    failed_stage = action.stage;
  }
  if (!made.is_status_first()) write_status(made);
  for (const auto& event : made.events)
    if (event.time == kube::PlannedEvent::Time::kWithStatus || !has_failed)
      events.push_back(fmt::format("{} {}: {}", event.type, event.reason, event.message));
  return made;
}

void World::write_status(const kube::Plan& plan) {
  if (!plan.status_patch) return;
  ++writes;
  job = kube::test::merge_patch(job, *plan.status_patch);
}

bool World::act(const kube::Action& action) {
  ++writes;
  const std::string& name = action.key.name;
  INFO("an action on " << name);
  REQUIRE(action.key.ns == "ns");
  if (action.verb == kube::Action::Verb::kCreate) {
    if (refusals > 0) return --refusals, false;
    REQUIRE(all_pods.count(name) == 0);
    Json pod = action.body;
    pod["metadata"].set("uid", "uid-" + name).set("creationTimestamp", now.to_string());
    pod.set("status", Json::object({{"phase", "Pending"}}));
    all_pods[name] = std::move(pod);
    return true;
  }
  if (action.resource == kube::kJobs) {
    REQUIRE(action.propagation == "Foreground");
    job = nullptr;
    return true;
  }
  REQUIRE(all_pods.count(name) == 1);
  if (action.verb == kube::Action::Verb::kDelete) {
    REQUIRE(action.uid == all_pods[name].get("metadata").get_string("uid"));
    all_pods[name]["metadata"].set("deletionTimestamp", now.to_string());
  } else {
    all_pods[name] = kube::test::merge_patch(all_pods[name], action.body);
  }
  collect(name);
  return true;
}

// A pod that is being deleted is removed once nothing holds it: no finalizer, and no kubelet.
void World::collect(const std::string& name) {
  const Json& pod = all_pods[name];
  const std::string_view phase = pod.get("status").get_string("phase");
  const bool is_held =
      phase != "Failed" && phase != "Succeeded" && !pod.get("spec").get_string("nodeName").empty();
  if (pod.get("metadata").find("deletionTimestamp") && !is_held &&
      pod.get("metadata").get_array("finalizers").empty())
    all_pods.erase(name);
}

void World::settle() {
  for (int round = 0; round < 20; ++round) {
    const int before = writes;
    reconcile();
    if (writes == before) return;
  }
  FAIL("it writes for ever");
}

void World::advance(std::int64_t seconds) {
  now = now + std::chrono::seconds(seconds);
  settle();
}

void World::patch_job(std::string_view patch) {
  job = with(job, patch);
  settle();
}

std::string World::youngest(std::string_view prefix) const {
  std::string found;
  for (const auto& [name, pod] : all_pods)
    if (name.starts_with(prefix) &&
        (found.empty() || name.substr(name.size() - 5) > found.substr(found.size() - 5)))
      found = name;
  INFO("no pod " << prefix);
  REQUIRE_FALSE(found.empty());
  return found;
}

const Json& World::at(std::string_view pod) const {
  return all_pods.at(youngest(pod));
}

void World::run(std::string_view pod) {
  Json& running = all_pods[youngest(pod)];
  running = with(running,
                 "{spec: {nodeName: local}, status: {phase: Running,"
                 " conditions: [{type: Ready, status: 'True'}]}}");
  settle();
}

void World::end(std::string_view pod, std::string_view phase, int exit_code) {
  Json& ended = all_pods[youngest(pod)];
  ended = with(ended, fmt::format("{{spec: {{nodeName: local}}, status: {{phase: {}, conditions: "
                                  "[{{type: Ready, status: 'False'}}], containerStatuses: [{{name: "
                                  "c, restartCount: 0, state: {{terminated: {{exitCode: {}, "
                                  "finishedAt: '{}'}}}}}}]}}}}",
                                  phase, exit_code, now.to_string()));
}

void World::succeed(std::string_view pod) {
  end(pod, "Succeeded", 0);
  settle();
}

void World::fail(std::string_view pod, int exit_code, std::string_view condition) {
  end(pod, "Failed", exit_code);
  if (!condition.empty())
    all_pods[youngest(pod)]["status"]["conditions"].push_back(
        Json::object({{"type", condition}, {"status", "True"}}));
  settle();
}

void World::remove(std::string_view pod) {
  const std::string name = youngest(pod);
  all_pods[name]["metadata"].set("deletionTimestamp", now.to_string());
  collect(name);
  settle();
}

void World::end_removed() {
  std::vector<std::string> ended;
  for (const auto& [name, pod] : all_pods)
    if (pod.get("metadata").find("deletionTimestamp")) ended.push_back(name);
  for (const std::string& name : ended) {
    const std::string_view phase = all_pods[name].get("status").get_string("phase");
    if (phase != "Succeeded") all_pods[name]["status"].set("phase", "Failed");
    collect(name);
  }
  settle();
}

std::string World::pods() const {
  std::string text;
  for (const auto& [name, pod] : all_pods) {
    const Json& metadata = pod.get("metadata");
    text += fmt::format("{}{} {}{}{}", text.empty() ? "" : ", ", name.substr(0, name.size() - 6),
                        pod.get("status").get_string("phase"),
                        metadata.find("deletionTimestamp") ? "!" : "",
                        metadata.get_array("finalizers").empty() ? "" : "*");
  }
  return text;
}

std::string World::conditions() const {
  std::string text;
  for (const Json& condition : status().get_array("conditions"))
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", condition.get_string("type"),
                        condition.get_string("status") == "True" ? "" : "!");
  return text;
}

std::string World::message(std::string_view type) const {
  for (const Json& condition : status().get_array("conditions"))
    if (condition.get_string("type") == type)
      return fmt::format("{}: {}", condition.get_string("reason"), condition.get_string("message"));
  return {};
}

std::string World::counters() const {
  std::string text;
  for (const char* name : {"active", "ready", "terminating", "succeeded", "failed"})
    if (const auto count = status().get_int(name); count != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", count, name);
  return text;
}

bool World::has_event(std::string_view text) const {
  return std::any_of(events.begin(), events.end(), [text](const std::string& event) {
    return event.find(text) != std::string::npos;
  });
}

}  // namespace trainer::batch::test
