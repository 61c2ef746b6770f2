#include "tests/unit/trainjob/world.hh"

#include <utility>

#include "api/api.hh"
#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"
#include "runtimes/views/pod.hh"
#include "tests/support/catch.hh"

namespace trainer::test {

using kube::Json;

Json yaml(std::string_view text) {
  auto parsed = kube::parse_yaml(text);
  if (!parsed) FAIL(parsed.error().message);
  return std::move(*parsed);
}

Json torch_runtime() {
  return yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: rt
  uid: runtime-uid
  resourceVersion: "7"
  labels: {trainer.kubeflow.org/framework: torch}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        replicas: 1
        groupName: default
        template:
          metadata:
            labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
          spec:
            template:
              spec:
                containers:
                - {name: node, image: 'img:1'}
)");
}

Json train_job() {
  return yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: j
  namespace: ns
  uid: job-uid
  resourceVersion: "10"
  generation: 1
  creationTimestamp: "2027-01-15T08:00:00Z"
spec:
  runtimeRef: {name: rt, kind: ClusterTrainingRuntime, apiGroup: trainer.kubeflow.org}
  suspend: false
  managedBy: trainer.kubeflow.org/trainjob-controller
  trainer: {numNodes: 2}
)");
}

World::World(Json trainjob, Json the_runtime)
    : object(std::move(trainjob)), runtime(std::move(the_runtime)) {}

void World::restart() {
  known = {};
  seen_event.clear();
  total_nodes = 0;
  stacks_number = 0;
  process_restarts.reset();
  scheduled_since.reset();
  if (job().status.phase == "Starting") scheduled_since = kube::Time();
}

TrainJob World::job() const {
  auto job = read_stored_trainjob(object);
  if (!job) FAIL(kube::to_string(job.error()));
  return std::move(*job);
}

const Json& World::status() const {
  static const Json kNothing;
  const Json* found = object.find("status");
  return found ? *found : kNothing;
}

std::string World::conditions() const {
  std::string text;
  for (const Json& condition : status().get_array("conditions")) {
    if (!text.empty()) text += ",";
    text += std::string(condition.get_string("type")) + "=" +
            std::string(condition.get_string("status"));
  }
  return text;
}

void World::set_spec(std::string_view name, Json value) {
  object["spec"].set(name, std::move(value));
  object["metadata"].set("generation", object["metadata"].get_int("generation") + 1);
}

void World::set_jobset_status(Json jobset_status) {
  REQUIRE(jobset);
  jobset->set("status", std::move(jobset_status));
}

void World::put_pod(const PodSpec& spec) {
  auto view = std::make_shared<PodView>();
  view->name = spec.name;
  view->ns = "ns";
  view->uid = spec.name + "-uid";
  view->jobset = "j";
  view->jobset_uid = "jobset-uid";
  view->replicated_job = spec.replicated_job;
  view->job_index = "0";
  view->index = spec.index;
  view->phase = spec.phase;
  view->node_name = spec.node_name;
  view->is_ready = spec.is_ready;
  view->waiting_reason = spec.waiting_reason;
  view->waiting_message = spec.waiting_message;
  view->attempt = spec.attempt;
  pods[spec.name] = std::move(view);
}

void World::fail_pod(const std::string& name, std::int32_t exit_code, std::string message) {
  auto view = std::make_shared<PodView>(*pods.at(name));
  view->phase = "Failed";
  view->is_ready = false;
  PodView::Failure failure;
  failure.container = "node";
  failure.exit_code = exit_code;
  failure.reason = "Error";
  failure.message = std::move(message);
  failure.finished_at = now;
  view->failure = std::move(failure);
  pods[name] = std::move(view);
}

void World::write_status(const TrainJobPlan& plan) {
  if (!plan.status_patch || (plan.is_status_minor() && are_minor_statuses_held)) return;
  ++requests;
  object = kube::test::merge_patch(object, *plan.status_patch);
}

void World::run(const kube::Action& action, const kube::ReadStamp& stamp) {
  ++requests;
  const kube::NamedObject named{action.resource, action.key};
  const std::string name = name_in_world(named);
  CHECK(action.key.name.size() > 0);
  if (action.resource == kTrainJobs && action.verb == kube::Action::Verb::kMergePatch) {
    object = kube::test::merge_patch(object, action.body);
  } else if (action.resource == kTrainJobs) {
    REQUIRE(action.verb == kube::Action::Verb::kDelete);
    CHECK(action.uid == "job-uid");
    is_deleted = true;
  } else if (action.resource == kube::kJobs) {
    REQUIRE(action.verb == kube::Action::Verb::kMergePatch);
    CHECK(action.body.get("metadata").get_string("uid").starts_with(action.key.name + "-uid"));
    CHECK(action.body.get("spec").get_int("activeDeadlineSeconds", 0) == 1);
    ended_jobs.push_back(action.key.name);
  } else if (action.resource == kJobSets) {
    if (action.verb == kube::Action::Verb::kDelete) {
      CHECK(action.uid == "jobset-uid");
      jobset.reset();
      return;
    }
    if (action.verb == kube::Action::Verb::kMergePatch) {
      jobset = kube::test::merge_patch(*jobset, action.body);
      return;
    }
    REQUIRE(action.verb == kube::Action::Verb::kApply);
    Json status = jobset && jobset->find("status") ? *jobset->find("status") : Json::object();
    Json next = action.body;
    apply_schema_defaults(next);
    next["metadata"].set("uid", "jobset-uid").set("creationTimestamp", now.to_string());
    next.set("status", std::move(status));
    jobset = std::move(next);
  } else {
    Json stored = action.body;
    stored["metadata"].set("uid", name + "-uid").set("resourceVersion", "1");
    others[name] = std::move(stored);
    kube::ReadObject written = read(named);
    written.stamp = stamp;
    known.set(named, std::move(written));
  }
}

kube::ReadObject World::read(const kube::NamedObject& named) {
  kube::ReadObject found;
  if (named.resource == kClusterTrainingRuntimes) {
    if (is_runtime_deleted)
      found.error = "clustertrainingruntimes.trainer.kubeflow.org \"rt\" not found";
    else
      found.content = snapshot_of(runtime);
    return found;
  }
  const auto at = others.find(name_in_world(named));
  if (at == others.end()) return found;
  found.object = std::make_shared<const Json>(at->second);
  const auto meta = kube::ObjectMeta::of(at->second);
  if (const auto* owner = meta.controller()) found.controller_uid = owner->uid;
  const Json* const text = at->second.find_path({"data", "runtime"});
  if (named.key.name == "j-runtime-snapshot" && text)
    found.content = snapshot_from(text->as_string());
  return found;
}

// These jobs wait for no other one, or have pods.
std::vector<JobView> World::jobs_of_jobset() const {
  std::vector<JobView> jobs;
  if (!jobset || !are_jobs_created) return jobs;
  for (const Json& rjob : jobset->get("spec").get_array("replicatedJobs")) {
    JobView job;
    job.name = "j-" + std::string(rjob.get_string("name")) + "-0";
    job.replicated_job = rjob.get_string("name");
    job.job_index = "0";
    job.restart_attempt = std::to_string(jobset->get("status").get_int("restarts", 0));
    job.uid = job.name + "-uid-" + job.restart_attempt;
    job.has_start_time = have_jobs_started;
    job.parallelism = rjob.get_path({"template", "spec"}).get_int("parallelism", 1);
    bool has_pods = false;
    for (const auto& [name, pod] : pods) {
      if (pod->replicated_job != rjob.get_string("name")) continue;
      has_pods = true;
      if (pod->phase == "Succeeded") ++job.succeeded;
      if (pod->phase == "Pending" || pod->phase == "Running") ++job.active;
    }
    if (job.succeeded == *job.parallelism) job.finished = kube::Condition{"Complete", "True"};
    if (has_pods || rjob.get_array("dependsOn").empty()) jobs.push_back(std::move(job));
  }
  return jobs;
}

TrainJobPlan World::reconcile() {
  known.age();
  for (int round = 0; round < 8; ++round) {
    const TrainJob typed = job();
    std::optional<JobSet> typed_jobset;
    if (jobset) {
      auto read = read_jobset(*jobset);
      if (!read) FAIL(kube::to_string(read.error()));
      typed_jobset = std::move(*read);
    }
    std::optional<JobSet> typed_deleted;
    if (deleted_jobset) typed_deleted = *read_jobset(*deleted_jobset);

    TrainJobObserved observed{typed, object, known};
    observed.jobset = typed_jobset ? &*typed_jobset : nullptr;
    observed.jobset_object = jobset ? &*jobset : nullptr;
    observed.deleted_jobset = typed_deleted ? &*typed_deleted : nullptr;
    for (const auto& [name, pod] : pods) observed.pods.push_back(pod.get());
    observed.refusal = refusal ? &*refusal : nullptr;
    observed.waiting_event = waiting_event;
    observed.is_waiting_event_new = waiting_event != seen_event;
    observed.total_nodes = total_nodes;
    observed.heartbeats = heartbeats;
    observed.stacks_number = stacks_number;
    observed.process_restarts = process_restarts;
    observed.scheduled_since = scheduled_since;
    const std::vector<JobView> jobs = jobs_of_jobset();
    for (const JobView& each : jobs) observed.jobs.push_back(&each);
    observed.is_jobset_controller_active = is_jobset_controller_active;
    observed.gates = gates;
    observed.jobset_managed_by = managed_by_stamp;
    observed.marks_finished = marks_finished;
    observed.now = now;

    TrainJobPlan plan = plan_trainjob(observed, options);
    for (const kube::NamedObject& named : plan.needs_objects) {
      kube::ReadObject found = read(named);
      found.stamp = plan.read_stamp;
      found.is_new = true;
      known.set(named, std::move(found));
      ++reads;
    }
    if (!plan.needs_objects.empty()) {
      CHECK(plan.actions.empty());
      CHECK_FALSE(plan.status_patch);
      continue;
    }
    seen_event = waiting_event;
    total_nodes = plan.total_nodes.value_or(total_nodes);
    scheduled_since = plan.scheduled_since;
    stacks_number = plan.stacks_number.value_or(stacks_number);
    if (plan.process_restarts) process_restarts = plan.process_restarts;
    if (plan.is_status_first()) write_status(plan);
    for (const kube::Action& action : plan.actions) run(action, plan.read_stamp);
    known.end_first_plan();
    if (plan.memory == kube::Plan::Memory::kForget) known.forget_all();
    if (!plan.is_status_first()) write_status(plan);
    return plan;
  }
  FAIL("the plan asks for more and more");
  return {};
}

std::vector<std::string> World::settle() {
  std::vector<std::string> events;
  for (int round = 0; round < 20; ++round) {
    const TrainJobPlan plan = reconcile();
    for (const std::string& reason : reasons_of(plan)) events.push_back(reason);
    if (plan.actions.empty() && !plan.status_patch) return events;
    if (is_deleted) return events;
  }
  FAIL("the job does not settle");
  return events;
}

std::string name_in_world(const kube::NamedObject& named) {
  std::string text = named.resource.kind;
  if (!named.resource.group.empty()) text += "." + named.resource.group;
  return text + "/" + named.key.name;
}

std::vector<std::string> reasons_of(const TrainJobPlan& plan) {
  std::vector<std::string> reasons;
  for (const kube::PlannedEvent& event : plan.events) reasons.push_back(event.reason);
  return reasons;
}

const kube::Action* find_action(const TrainJobPlan& plan, kube::Action::Verb verb,
                                std::string_view kind) {
  for (const kube::Action& action : plan.actions) {
    if (action.verb == verb && action.resource.kind == kind) return &action;
  }
  return nullptr;
}

}  // namespace trainer::test
