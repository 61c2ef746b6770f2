#include "tests/unit/v1/world.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/trainjob/plan.hh"
#include "runtimes/v1/context.hh"

namespace trainer::v1::test {

using kube::Json;

Json yaml(std::string_view text) {
  auto value = kube::parse_yaml(text);
  INFO(text);
  REQUIRE(value.has_value());
  return *value;
}

const Framework& framework_of(std::string_view kind) {
  const Framework* framework = find_framework(kind);
  REQUIRE(framework);
  return *framework;
}

Json make_job(std::string_view kind, std::string_view roles, std::string_view more,
              std::string_view name) {
  const Framework& framework = framework_of(kind);
  const std::string_view container = framework.container.empty() ? "mpi" : framework.container;
  Json specs = Json::object();
  std::istringstream words{std::string(roles)};
  for (std::string role; words >> role;) {
    const std::size_t star = role.find('*');
    const int replicas = star == role.npos ? 1 : std::stoi(role.substr(star + 1));
    specs.set(
        role.substr(0, star),
        yaml(fmt::format("{{replicas: {}, template: {{spec: {{containers: [{{name: {}, image: "
                         "busybox}}]}}}}}}",
                         replicas, container)));
  }
  Json spec = more.empty() ? Json::object() : yaml(more);
  for (auto& [role, extra] : spec["roles"].is_object() ? spec["roles"].as_object() : Json::Object())
    specs[role] = kube::test::merge_patch(specs[role], extra);
  spec.erase("roles");
  spec.set(framework.replica_specs, specs);
  return Json::object(
      {{"apiVersion", "kubeflow.org/v1"},
       {"kind", framework.resource.kind},
       {"metadata", Json::object({{"name", name}, {"uid", name == "p" ? "job-uid" : name}})},
       {"spec", spec}});
}

V1Job read(const Json& object) {
  auto job = read_job(object, framework_of(object.get_string("kind")).replica_specs);
  INFO((job ? std::string() : kube::to_string(job.error())));
  REQUIRE(job.has_value());
  return *job;
}

World::World(std::string name) : ns(std::move(name)) {}

World::World(const Json& job) : World(std::string("ns")) {
  REQUIRE(apply(job) == 201);
  settle();
}

int World::apply(Json object) {
  const std::string kind(object.get_string("kind"));
  const std::string key = kind + "/" + std::string(object.get("metadata").get_string("name"));
  const bool exists = has(key);
  if (const Framework* framework = find_framework(kind); framework && framework->has_webhook) {
    AdmissionRequest request;
    request.operation = exists ? "UPDATE" : "CREATE";
    request.object = object;
    if (exists) request.old_object = at(key);
    if (const auto answer = validate_v1job(request, *framework); !answer.is_allowed)
      return answer.code;
  }
  object["metadata"].set("namespace", ns);
  if (object["metadata"].get_string("uid").empty())
    object["metadata"].set("uid", fmt::format("uid-{}", ++version_));
  if (exists && find_framework(kind)) object.set("status", at(key).get("status"));
  objects[key] = std::move(object);
  return exists ? 200 : 201;
}

int World::patch(const std::string& key, const Json& body) {
  Json object = kube::test::merge_patch(at(key), body);
  return apply(std::move(object));
}

void World::remove(const std::string& key) {
  if (is_graceful && key.starts_with("Pod/") &&
      at(key).get("status").get_string("phase") == "Running")
    objects[key]["metadata"].set("deletionTimestamp", now.to_string());
  else
    release(key);
}

// The object is removed with what it owns; the garbage collector does the same.
void World::release(const std::string& key) {
  const std::string uid(at(key).get("metadata").get_string("uid"));
  objects.erase(key);
  std::erase_if(objects, [&uid](const auto& object) {
    const kube::ObjectMeta meta = kube::ObjectMeta::of(object.second);
    return meta.controller() && meta.controller()->uid == uid;
  });
}

std::string World::key_of(std::string_view job) const {
  for (const Framework* framework : frameworks())
    if (std::string key = framework->resource.kind + "/" + std::string(job); has(key)) return key;
  return {};
}

const Json& World::at(const std::string& key) const {
  const auto found = objects.find(key);
  INFO("no " << key);
  REQUIRE(found != objects.end());
  return found->second;
}

std::vector<std::string> World::names(std::string_view kind) const {
  std::vector<std::string> found;
  for (const auto& [key, object] : objects)
    if (object.get_string("kind") == kind)
      found.emplace_back(object.get("metadata").get_string("name"));
  return found;
}

void World::collect_garbage() {
  std::set<std::string> uids;
  for (const auto& [key, object] : objects) uids.insert(kube::ObjectMeta::of(object).uid);
  std::vector<std::string> left;
  for (const auto& [key, object] : objects) {
    const kube::ObjectMeta meta = kube::ObjectMeta::of(object);
    if (meta.controller() && !uids.contains(meta.controller()->uid)) left.push_back(key);
  }
  for (const std::string& key : left) release(key);
}

void World::sync(std::string_view kind) {
  const auto is_of_kind = [kind](const auto& object) {
    return object.first.substr(0, object.first.find('/')) == kind;
  };
  std::erase_if(*seen, is_of_kind);
  std::copy_if(objects.begin(), objects.end(), std::inserter(*seen, seen->end()), is_of_kind);
}

void World::restart() {
  seen = objects;
  memories_.clear();
}

bool World::is_killed() const {
  return writes >= kill_at;
}

void World::answer(const std::string& key) {
  if (seen && has(key)) (*seen)[key] = at(key);
}

Fate World::draw(const kube::Resource& resource) {
  ++writes;
  return fate ? fate(resource) : Fate::kDone;
}

// Does what kube::Executor::create does: an object of this name counts as created if the job owns
// it. An object that is not watched may have other content, and is read again.
bool World::create(const std::string& key, const kube::Action& action, bool is_answered) {
  if (has(key)) {
    REQUIRE(seen);  // with caches that are up to date, nothing creates an existing object
    const kube::ObjectMeta meta = kube::ObjectMeta::of(at(key));
    if (!is_answered || !meta.controller() || meta.controller()->uid != action.owner_uid)
      return false;
    answer(key);
    return action.resource != kube::kConfigMaps;
  }
  Json body = action.body;
  body["metadata"].set("uid", fmt::format("uid-{}", ++version_));
  if (action.resource == kube::kPods) {
    if (on_pod) on_pod(body);
    body.set("status", Json::object({{"phase", "Pending"}}));
  }
  objects[key] = std::move(body);
  if (is_answered) answer(key);
  return is_answered;
}

bool World::run(const kube::Action& action) {
  const std::string key = action.resource.kind + "/" + action.key.name;
  INFO("an action on " << key);
  REQUIRE(action.key.ns == ns);
  const Fate drawn = draw(action.resource);
  if (drawn == Fate::kConflict || drawn == Fate::kFailed) return false;
  const bool is_answered = drawn == Fate::kDone;
  switch (action.verb) {
    case kube::Action::Verb::kCreate:
      return create(key, action, is_answered);
    case kube::Action::Verb::kMergePatch:
      if (seen && !has(key)) return false;
      objects[key] = kube::test::merge_patch(at(key), action.body);
      break;
    case kube::Action::Verb::kDelete: {
      const bool is_other = has(key) && !action.uid.empty() &&
                            action.uid != at(key).get("metadata").get_string("uid");
      if (!seen) REQUIRE_FALSE((!has(key) || is_other));
      if (!has(key) || is_other) return is_answered;
      remove(key);
      break;
    }
    case kube::Action::Verb::kApply:
      FAIL("V1 jobs apply nothing");
  }
  if (is_answered) answer(key);
  return is_answered;
}

// All actions of a stage run, whatever the results of the others.
bool World::run_all(const std::vector<kube::Action>& actions) {
  bool is_done = true;
  for (int stage = 0; stage <= kWithPods && is_done; ++stage)
    for (const kube::Action& action : actions)
      if (action.stage == stage && !is_killed()) is_done &= run(action);
  return is_done;
}

// Does what kube::StatusWriter::patch does: it writes only the version that was observed, and after
// a conflict the object is read.
bool World::write_status(const std::string& job_key, const Json& observed, const Json& patch) {
  if (is_killed()) return false;
  const Fate drawn = draw(framework_of(observed.get_string("kind")).resource);
  if (drawn == Fate::kFailed) return false;
  const bool is_there = has(job_key) && at(job_key).get("metadata").get_string("uid") ==
                                            observed.get("metadata").get_string("uid");
  if (!is_there) return drawn != Fate::kLost;
  if (drawn == Fate::kConflict || (seen && at(job_key) != observed)) {
    answer(job_key);
    return false;
  }
  objects[job_key] = kube::test::merge_patch(at(job_key), patch);
  if (has_upstreams_crds) {
    for (const char* member : {"restarts", "restartedPods", "firstFailure"})
      objects[job_key]["status"].erase(member);
  }
  if (drawn == Fate::kDone) answer(job_key);
  return drawn == Fate::kDone;
}

void World::record(const std::string& job, const std::vector<kube::PlannedEvent>& list) {
  const std::size_t slash = job.find('/');
  for (const auto& event : list)
    events.push_back(fmt::format("{} {}: {} {}: {}", job.substr(0, slash), job.substr(slash + 1),
                                 event.type, event.reason, event.message));
}

V1JobPlan World::make_plan(const V1Job& job, const Framework& framework, Memory& memory) const {
  std::vector<std::shared_ptr<V1PodView>> views;
  std::vector<ServiceView> services;
  for (const auto& [key, child] : caches()) {
    const kube::ObjectMeta meta = kube::ObjectMeta::of(child);
    if (!meta.controller() || meta.controller()->uid != job.metadata.uid) continue;
    if (key.starts_with("Pod/")) views.push_back(transform_pod(kube::print_json(child)));
    if (key.starts_with("Service/")) services.push_back({meta.name, meta.uid, false});
  }
  std::vector<const V1PodView*> pods;
  for (const auto& view : views) pods.push_back(view.get());
  // Without caches everything is read, each time.
  if (!seen) memory.objects.forget_all();
  const auto stored = [&](const auto& from, const kube::NamedObject& named) {
    const auto found = from.find(named.resource.kind + "/" + named.key.name);
    return found == from.end() ? nullptr
                               : std::make_shared<const Json>(trim_dependent(job, found->second));
  };
  Observed observed{framework,
                    job,
                    pods,
                    services,
                    memory.objects,
                    {},
                    memory.relayed,
                    settings,
                    now,
                    refusal ? &*refusal : nullptr};
  if (const kube::Resource* groups = pod_groups_of(settings); groups && seen)
    observed.watched_pod_group = stored(*seen, {*groups, job.metadata.key()});
  V1JobPlan made;
  for (int round = 0; round < 3; ++round) {
    made = plan(observed);
    if (made.needs_objects.empty()) return made;
    REQUIRE(made.actions.empty());
    for (const kube::NamedObject& named : made.needs_objects)
      memory.objects.set(named, {.object = stored(objects, named)});
  }
  FAIL("the plan asks for more after each read");
  return made;
}

bool World::is_up_to_date(const std::string& job_key, const Json& observed, Memory& memory) {
  if (!seen || !memory.is_status_unknown) return true;
  if (fate && fate(framework_of(observed.get_string("kind")).resource) != Fate::kDone) return false;
  if (!has(job_key) || at(job_key) != observed) return false;
  memory.is_status_unknown = false;
  return true;
}

void World::keep_status(const V1JobPlan& made, Memory& memory) {
  memory.extensions = made.extensions;
  totals.created |= made.counts.created;
  totals.succeeded |= made.counts.succeeded;
  totals.failed |= made.counts.failed;
}

V1JobPlan World::reconcile(const std::string& job_key) {
  const auto found = caches().find(job_key);
  if (found == caches().end()) return {};
  const Json object = found->second;
  const Framework& framework = framework_of(object.get_string("kind"));
  V1Job job = test::read(object);
  Memory& memory = memories_[job.metadata.uid];
  if (auto completed = with_extensions(job, memory.extensions)) job = std::move(*completed);
  if (!is_up_to_date(job_key, object, memory)) return {};
  const V1JobPlan made = make_plan(job, framework, memory);
  const auto has_written = [&] {
    const bool is_written = !made.status_patch || write_status(job_key, object, *made.status_patch);
    memory.is_status_unknown = !is_written;
    if (is_written && !is_killed()) keep_status(made, memory);
    return is_written;
  };
  bool is_done = !made.is_status_first() || has_written();
  if (is_done) {
    is_done = run_all(made.actions);
    if (!made.is_status_first()) is_done &= has_written();
  }
  if (is_killed()) {
    // A new process does not know what was reported.
    if (seen)
      restart();
    else
      memories_.clear();
    return made;
  }
  if (is_done) {
    memory.relayed = made.relayed;
    totals.deleted |= made.counts.deleted;
    totals.restarted += made.counts.restarted;
    for (const kube::Action& action : made.actions) {
      const kube::NamedObject named{action.resource, action.key};
      if (action.verb == kube::Action::Verb::kCreate)
        memory.objects.set(named, {.object = std::make_shared<const Json>(action.body)});
      else
        memory.objects.forget(named.resource, named.key.name);
    }
  }
  if (!is_done || made.memory != kube::Plan::Memory::kKeep) memory.objects.invalidate_all();
  record(job_key, made.events);
  return made;
}

void World::settle() {
  for (int pass = 0; pass < 20; ++pass) {
    const int before = writes;
    if (seen) {
      collect_garbage();
      seen = objects;
    }
    for (const Framework* framework : frameworks())
      for (const std::string& name : names(framework->resource.kind))
        if (const std::string key = framework->resource.kind + "/" + name; has(key)) reconcile(key);
    if (writes == before) return;
  }
  FAIL("the jobs never settle");
}

void World::advance(std::int64_t seconds) {
  now = now + std::chrono::seconds(seconds);
  settle();
}

void World::pod(const std::string& name, std::string_view phase, std::optional<int> exit_code,
                int restarts) {
  set_pod(name, phase, exit_code, restarts);
  settle();
}

void World::set_pod(const std::string& name, std::string_view phase, std::optional<int> exit_code,
                    int restarts) {
  Json& object = objects["Pod/" + name];
  REQUIRE(object.is_object());
  Json container =
      Json::object({{"name", object["spec"]["containers"].as_array().front().get("name")},
                    {"restartCount", restarts},
                    {"state", Json::object()}});
  const Json ended = Json::object(
      {{"exitCode", exit_code.value_or(0)}, {"reason", "Error"}, {"finishedAt", now.to_string()}});
  if (phase == "Running" && exit_code)
    container.set("lastState", Json::object({{"terminated", ended}}));
  container["state"].set(phase == "Running" ? "running" : "terminated",
                         phase == "Running" ? Json::object() : ended);
  Json status = Json::object({{"phase", phase}});
  // A pod that ends without an exit code was evicted.
  if (exit_code || phase != "Failed")
    status.set("containerStatuses", Json::array({std::move(container)}));
  object.set("status", std::move(status));
}

void World::all_pods(std::string_view phase) {
  for (const std::string& name : names("Pod")) pod(name, phase);
}

std::string World::conditions(const std::string& job) const {
  std::string text;
  for (const Json& one : at(key_of(job)).get("status").get_array("conditions"))
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", one.get_string("type"),
                        one.get_string("status") == "True" ? "" : "!");
  return text;
}

std::string World::message(std::string_view type, const std::string& job) const {
  for (const Json& one : at(key_of(job)).get("status").get_array("conditions"))
    if (one.get_string("type") == type)
      return fmt::format("{}: {}", one.get_string("reason"), one.get_string("message"));
  return {};
}

std::string World::counters(std::string_view role, const std::string& job) const {
  const Json* status = at(key_of(job)).get("status").get("replicaStatuses").find(role);
  if (!status) return "none";
  std::string text;
  for (const char* name : {"active", "succeeded", "failed"})
    if (const auto count = status->get_int(name))
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", count, name);
  return text;
}

std::string World::env(const std::string& pod_name, std::string_view name,
                       std::size_t container) const {
  std::string value = "-";
  const Json& spec = at("Pod/" + pod_name).get("spec");
  for (const Json& one : spec.get_array("containers").at(container).get_array("env"))
    if (one.get_string("name") == name) value = one.get_string("value");
  return value;
}

bool World::has_event(std::string_view text) const {
  for (const std::string& event : events)
    if (event.find(text) != event.npos) return true;
  return false;
}

}  // namespace trainer::v1::test
