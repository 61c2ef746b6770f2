#include "tests/unit/jobset/world.hh"

#include <fmt/format.h>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/names.hh"

namespace trainer::jobset::test {

using kube::Json;

std::string test_js(std::string_view more) {
  const std::string job = R"(
    template:
      spec:
        backoffLimit: 0
        parallelism: 1
        completions: 1
        template:
          spec:
            restartPolicy: Never
            containers: [{name: c, image: i}]
)";
  return R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: test-js}
spec:
  replicatedJobs:
  - name: replicated-job-a
    replicas: 1)" +
         job + R"(  - name: replicated-job-b
    replicas: 3)" +
         job + std::string(more);
}

World::World(std::string_view yaml, Gates open) : gates(open) {
  auto parsed = kube::parse_yaml(yaml);
  INFO((parsed ? std::string() : parsed.error().message));
  REQUIRE(parsed.has_value());
  jobset_ = std::move(*parsed);
  apply_schema_defaults(jobset_);
  apply_webhook_defaults(jobset_);
  jobset_["metadata"]["namespace"] = "default";
  jobset_["metadata"]["uid"] = "jobset-uid";
  jobset_["metadata"]["resourceVersion"] = next_version();
}

std::string World::next_version() {
  return std::to_string(++version_);
}

kube::Plan World::context() {
  auto read = read_jobset(jobset_);
  INFO((read ? std::string() : kube::to_string(read.error())));
  REQUIRE(read.has_value());
  std::vector<std::shared_ptr<JobView>> views;
  Observed observed{*read};
  for (const auto& [name, job] : jobs_) {
    views.push_back(view_job(job));
    REQUIRE(views.back());
    observed.jobs.push_back(views.back().get());
  }
  for (const auto& job : removed_) observed.removed_jobs.push_back(job.get());
  for (const PodView& pod : pods) observed.pods.push_back(&pod);
  auto service = headless_service(*read);
  observed.service_exists =
      service && services.count(std::string((*service)["metadata"].get_string("name")));
  kube::NamedObjects known;
  observed.objects = &known;
  observed.now = now;
  observed.gates = gates;
  observed.decorators = decorators;
  observed.refusal = refusal_ ? &*refusal_ : nullptr;
  observed.is_of_trainjob = is_of_trainjob;
  observed.warning = warning;
  kube::Plan planned = plan(observed);
  for (int round = 0; !planned.needs_objects.empty(); ++round) {
    REQUIRE(round < 3);
    CHECK(planned.actions.empty());
    for (const kube::NamedObject& named : planned.needs_objects) {
      const auto claim = claims.find(named.key.name);
      kube::ReadObject found;
      if (claim != claims.end()) found.object = std::make_shared<const Json>(claim->second);
      found.is_new = true;
      known.set(named, std::move(found));
    }
    planned = plan(observed);
  }
  refusal_.reset();
  if (planned.is_status_first() && planned.status_patch) patch_status(*planned.status_patch);
  for (int stage = 0; stage < 3; ++stage) {
    for (const kube::Action& action : planned.actions) {
      if (action.stage != stage) continue;
      const auto refused = refusals.find(action.resource.kind);
      if (refused == refusals.end()) {
        run(action);
      } else {
        refusal_ = kube::Refusal{action.resource, refused->second};
      }
    }
  }
  if (!planned.is_status_first() && planned.status_patch) patch_status(*planned.status_patch);
  for (const kube::PlannedEvent& event : planned.events) events.push_back(event);
  return planned;
}

void World::settle() {
  for (int i = 0; i < 50; ++i) {
    if (is_jobset_deleted) return;
    const kube::Plan planned = context();
    if (planned.actions.empty() && !planned.status_patch) return;
  }
  FAIL("passes never end: every one asks for something again");
}

void World::patch_status(const Json& patch) {
  REQUIRE(patch.size() == 1);
  REQUIRE(patch.find("status"));
  ++status_writes;
  jobset_ = kube::test::merge_patch(std::move(jobset_), patch);
  jobset_["metadata"]["resourceVersion"] = next_version();
}

void World::create_job(const kube::Action& action) {
  INFO("creating " << action.key.to_string());
  REQUIRE(jobs_.count(action.key.name) == 0);
  REQUIRE(action.owner_uid == "jobset-uid");
  REQUIRE(action.failure_reason == "JobCreationFailed");
  Json job = action.body;
  Json& metadata = job["metadata"];
  metadata["uid"] = fmt::format("job-{}", next_version());
  metadata["resourceVersion"] = next_version();
  Json& spec = job["spec"];
  if (!spec.find("parallelism")) spec["parallelism"] = 1;
  const Json parallelism = spec["parallelism"];
  if (!spec.find("completions")) spec["completions"] = parallelism;
  jobs_[action.key.name] = std::move(job);
}

void World::run(const kube::Action& action) {
  INFO("carrying out an action on " << action.resource.kind << " " << action.key.to_string());
  REQUIRE(action.key.ns == "default");
  switch (action.verb) {
    case kube::Action::Verb::kCreate:
      if (action.resource == kube::kJobs) return create_job(action);
      (action.resource == kube::kServices ? services : claims)[action.key.name] = action.body;
      return;
    case kube::Action::Verb::kMergePatch: {
      Json& job = job_at(action.key.name);
      const Json* version = action.body.find_path({"metadata", "resourceVersion"});
      REQUIRE(version);
      REQUIRE(*version == *job.find_path({"metadata", "resourceVersion"}));
      edit_job(action.key.name, action.body);
      return;
    }
    case kube::Action::Verb::kDelete:
      REQUIRE(action.propagation == "Foreground");
      if (action.resource == kJobSets) {
        is_jobset_deleted = true;
        return;
      }
      REQUIRE(action.uid == job_at(action.key.name)["metadata"].get_string("uid"));
      edit_job(
          action.key.name,
          Json::object({{"metadata", Json::object({{"deletionTimestamp", now.to_string()}})}}));
      return;
    case kube::Action::Verb::kApply:
      FAIL("the JobSet controller never applies");
  }
}

Json& World::job_at(const std::string& name) {
  const auto at = jobs_.find(name);
  INFO("no Job " << name);
  REQUIRE(at != jobs_.end());
  return at->second;
}

const Json& World::job(const std::string& name) const {
  const auto at = jobs_.find(name);
  INFO("no Job " << name);
  REQUIRE(at != jobs_.end());
  return at->second;
}

void World::edit_job(const std::string& name, const Json& patch) {
  Json& job = job_at(name);
  job = kube::test::merge_patch(std::move(job), patch);
  job["metadata"]["resourceVersion"] = next_version();
}

void World::edit(const Json& patch) {
  jobset_ = kube::test::merge_patch(std::move(jobset_), patch);
  jobset_["metadata"]["resourceVersion"] = next_version();
}

void World::set_suspend(bool value) {
  edit(Json::object({{"spec", Json::object({{"suspend", value}})}}));
}

void World::set_status(const std::string& name, const Json& status) {
  edit_job(name, Json::object({{"status", status}}));
}

void World::ready(const std::string& name) {
  set_status(name, Json::object({{"active", 1}, {"ready", 1}, {"startTime", now.to_string()}}));
}

void World::activate(const std::string& name) {
  set_status(name, Json::object({{"active", 1}, {"ready", 0}, {"startTime", now.to_string()}}));
}

void World::set_condition(const std::string& name, std::string_view type, std::string_view reason,
                          std::string_view message) {
  kube::Condition condition;
  condition.type = type;
  condition.status = "True";
  condition.reason = reason;
  condition.message = message;
  condition.last_transition_time = now;
  Json status = job_at(name).find("status") ? job_at(name)["status"] : Json::object();
  status["conditions"].push_back(condition.to_json());
  set_status(name, status);
}

void World::complete(const std::string& name) {
  set_status(name, Json::object({{"active", 0}, {"ready", 0}, {"succeeded", 1}}));
  set_condition(name, "Complete", "CompletionsReached",
                "reached expected number of succeeded pods");
}

void World::fail(const std::string& name, std::string_view reason, std::string_view message) {
  set_status(name, Json::object({{"active", 0}, {"ready", 0}, {"failed", 1}}));
  set_condition(name, "Failed", reason, message);
}

void World::release(const std::string& name) {
  INFO(name << " must be waiting for its pods");
  REQUIRE(job_at(name)["metadata"].find("deletionTimestamp"));
  jobs_.erase(name);
}

void World::release_all() {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    at = at->second["metadata"].find("deletionTimestamp") ? jobs_.erase(at) : std::next(at);
  }
}

void World::add_foreign(Json job) {
  const std::string name(job["metadata"].get_string("name"));
  jobs_[name] = std::move(job);
}

void World::remove(const std::string& name) {
  auto last = view_job(job_at(name));
  if (last->is_complete()) removed_.push_back(std::move(last));
  jobs_.erase(name);
}

std::vector<std::string> World::job_names() const {
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) names.push_back(name);
  return names;
}

std::map<std::string, int> World::attempts() const {
  std::map<std::string, int> counts;
  for (const auto& [name, job] : jobs_) {
    const Json* label = job.find_path({"metadata", "labels", kRestartAttemptKey});
    ++counts[label ? label->as_string() : std::string()];
  }
  return counts;
}

int World::suspended_jobs() const {
  int count = 0;
  for (const auto& [name, job] : jobs_) count += job.find("spec")->get_bool("suspend") ? 1 : 0;
  return count;
}

namespace {

const Json* find_named(const Json* list, std::string_view key, std::string_view value) {
  if (!list || !list->is_array()) return nullptr;
  for (const Json& item : list->as_array()) {
    if (item.get_string(key) == value) return &item;
  }
  return nullptr;
}

}  // namespace

std::string World::condition(std::string_view type) const {
  const Json* found = find_named(jobset_.find_path({"status", "conditions"}), "type", type);
  return found ? std::string(found->get_string("status")) : std::string();
}

std::string World::condition_reason(std::string_view type) const {
  const Json* found = find_named(jobset_.find_path({"status", "conditions"}), "type", type);
  return found ? std::string(found->get_string("reason")) : std::string();
}

std::string World::terminal_state() const {
  const Json* status = jobset_.find("status");
  return status ? std::string(status->get_string("terminalState")) : std::string();
}

std::string World::restarts() const {
  const Json* status = jobset_.find("status");
  REQUIRE(status);
  return fmt::format("{}/{}", status->get_int("restarts"),
                     status->get_int("restartsCountTowardsMax"));
}

const Json* World::replicated_job_status(std::string_view name) const {
  return find_named(jobset_.find_path({"status", "replicatedJobsStatus"}), "name", name);
}

std::string World::counters(std::string_view name) const {
  const Json* found = replicated_job_status(name);
  if (!found) return "none";
  return fmt::format("ready {} succeeded {} failed {} active {} suspended {}",
                     found->get_int("ready"), found->get_int("succeeded"), found->get_int("failed"),
                     found->get_int("active"), found->get_int("suspended"));
}

std::vector<std::string> texts(const std::vector<kube::PlannedEvent>& events) {
  std::vector<std::string> result;
  for (const kube::PlannedEvent& event : events) {
    result.push_back(fmt::format("{} {}: {}", event.type, event.reason, event.message));
  }
  return result;
}

}  // namespace trainer::jobset::test
