#include "tests/unit/fate/trainjobs.hh"

#include <utility>

#include "api/api.hh"
#include "api/kinds/kinds.hh"
#include "kube/model/patch.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/legacy.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::fate {
namespace {

using kube::Json;

// The status server runs, so that progress reports are in the created objects.
PipelineOptions options() {
  PipelineOptions all(production_plugins());
  all.is_progress_enabled = true;
  all.status_server_url = "https://trainer.kubeflow.svc:10443";
  all.status_server_ca = "CA";
  return all;
}

AdmissionRequest create_request(const Json& object) {
  AdmissionRequest request;
  request.operation = "CREATE";
  request.ns = "ns";
  request.kind = object.get_string("kind");
  request.object = object;
  return request;
}

// The object as the mutating webhook and the API server change it.
Json admit(const Json& object, const AdmissionAnswer& answer, Outcome& outcome) {
  outcome.add(answer.warnings);
  if (!answer.is_allowed) {
    outcome.is_refused = true;
    outcome.messages.push_back(answer.message);
  }
  Json admitted = object;
  if (answer.json_patch.is_array()) {
    auto patched = kube::apply_json_patch(object, answer.json_patch);
    REQUIRE(patched);
    admitted = std::move(*patched);
  }
  apply_schema_defaults(admitted);
  outcome.refuse(check_schema(admitted));
  return admitted;
}

void answer(const AdmissionAnswer& said, Outcome& outcome) {
  outcome.add(said.warnings);
  if (said.is_allowed) return;
  outcome.is_refused = true;
  outcome.messages.push_back(said.message);
}

Json admit_runtime(const Json& sent, Outcome& outcome) {
  Json runtime = admit(sent, mutate_runtime(create_request(sent)), outcome);
  if (!outcome.is_refused) answer(validate_runtime(create_request(runtime), options()), outcome);
  return runtime;
}

Json admit_job(const Json& sent, const Json& runtime, Outcome& outcome) {
  Json job = admit(sent, mutate_trainjob(create_request(sent), kube::Time()), outcome);
  if (outcome.is_refused) return job;
  AdmissionLookups lookups;
  lookups.runtime = [&runtime](const std::string& kind, const std::string&,
                               const std::string& name) {
    return name == runtime.get("metadata").get_string("name") && kind == "ClusterTrainingRuntime"
               ? std::make_shared<const Json>(runtime)
               : nullptr;
  };
  lookups.priority_class_exists = [](const std::string&) { return true; };
  answer(validate_trainjob(create_request(job), lookups, options()), outcome);
  return job;
}

// Adds what the JobSet controller makes of the JobSet.
void add_children(const Json& object, Json& created) {
  Json stored = object;
  apply_schema_defaults(stored);
  const auto jobset = read_jobset(stored);
  REQUIRE(jobset);
  for (Json& job : jobset::all_jobs(*jobset, {}, production_job_decorators()))
    created.push_back(std::move(job));
  if (auto service = jobset::headless_service(*jobset)) created.push_back(std::move(*service));
  for (const VolumeClaimPolicy& policy : jobset->spec.volumeClaimPolicies)
    for (const Json& claim : policy.templates)
      created.push_back(jobset::make_claim(*jobset, policy, claim));
}

// Covers the time from the creation to the deletion by the time to live. If the snapshot of the
// runtime is in the way, that is left out: it has all fields.
Json live_trainjob(const Json& sent, const Json& sent_runtime) {
  Outcome unused;
  Json runtime = admit_runtime(sent_runtime, unused);
  Json job = admit_job(sent, runtime, unused);
  test::World world(std::move(job), std::move(runtime));
  world.options = options();
  Json seen = Json::array();
  const auto look = [&] {
    world.settle();
    const TrainJobPlan plan = world.reconcile();
    seen.push_back(plan.requeue_after ? Json(std::int64_t{plan.requeue_after->count()}) : Json());
    seen.push_back(world.jobset ? *world.jobset : Json());
    Json status = world.status();
    if (status.is_object()) status.erase("runtimeSnapshotHash");
    seen.push_back(std::move(status));
    seen.push_back(world.is_deleted);
  };
  look();
  if (!world.jobset) return seen;
  world.set_jobset_status(yaml(R"(
terminalState: Completed
conditions:
- {type: Completed, status: "True", reason: AllJobsCompleted, message: m, lastTransitionTime: "2027-01-15T08:00:10Z"}
)"));
  look();
  return seen;
}

Json job_patch(const Json& replicated_job) {
  Json pod = Json::object();
  for (const char* list : {"containers", "initContainers"})
    for (const Json& container :
         replicated_job.get_path({"template", "spec", "template", "spec"}).get_array(list))
      pod[list].push_back(Json::object({{"name", container.get("name")}}));
  Json job = Json::object({{"name", replicated_job.get("name")}});
  job["template"]["spec"]["template"].set("spec", std::move(pod));
  return job;
}

}  // namespace

Outcome render_trainjob(const Json& sent, const Json& sent_runtime) {
  Outcome outcome;
  const Json runtime = admit_runtime(sent_runtime, outcome);
  if (outcome.is_refused) return outcome;
  const Json job = admit_job(sent, runtime, outcome);
  if (outcome.is_refused) return outcome;
  const auto typed = read_stored_trainjob(job);
  const auto sample = read_runtime(runtime);
  REQUIRE(typed);
  REQUIRE(sample);
  const auto built = build(*typed, *sample, options());
  if (!built) {
    outcome.refuse(built.error());
    return outcome;
  }
  outcome.created.push_back(built->jobset);
  for (const DependentObject& dependent : built->dependents)
    outcome.created.push_back(dependent.object);
  add_children(built->jobset, outcome.created);
  return outcome;
}

Subject trainjob_subject(const Sample& sample) {
  const Json& runtime = sample.runtime;
  return {sample.name, sample.job, &find_schema("TrainJob")->document,
          [&runtime](const Json& job) { return render_trainjob(job, runtime); },
          [&runtime](const Json& job) { return live_trainjob(job, runtime); }};
}

Subject runtime_subject(const Sample& sample) {
  // The job's own setting would win.
  Json job = sample.job;
  job["spec"].erase("trainer");
  return {sample.name, sample.runtime, &find_schema("ClusterTrainingRuntime")->document,
          [job](const Json& runtime) { return render_trainjob(job, runtime); },
          [job](const Json& runtime) { return live_trainjob(job, runtime); }};
}

Subject patch_subject(const Sample& sample, Values& values) {
  Subject subject = trainjob_subject(sample);
  const auto& jobs =
      sample.runtime.get_path({"spec", "template", "spec"}).get_array("replicatedJobs");
  Json patch = Json::object({{"manager", "example.com/fate"}});
  patch["trainingRuntimeSpec"]["template"]["spec"].set(
      "replicatedJobs", Json::array({job_patch(values.one_of(jobs))}));
  subject.document["spec"].set("runtimePatches", Json::array({std::move(patch)}));
  return subject;
}

Sample with_more_containers(Sample sample) {
  Json& jobs = *sample.runtime.find_path({"spec", "template", "spec", "replicatedJobs"});
  for (Json& job : jobs.as_array()) {
    Json& pod = *job.find_path({"template", "spec", "template", "spec"});
    pod["containers"].push_back(yaml("{name: side, image: 'side:1'}"));
    pod["initContainers"].push_back(yaml("{name: prepare, image: 'prepare:1'}"));
  }
  return sample;
}

}  // namespace trainer::fate
