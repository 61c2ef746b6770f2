// Every list that a user can write has the size that the API server stores. The work for an object
// takes time in proportion to its length. Each list is made twice, once four times as long as the
// other; an algorithm that compares all items with all takes sixteen times as long for it.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/difference.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/plan.hh"
#include "runtimes/v1/plan.hh"
#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"

namespace trainer::test {
namespace {

using kube::Json;

#if defined(__OPTIMIZE__)
constexpr std::size_t kObjectLimit = kIsSanitized ? 100'000 : 1'500'000;  // the latter is etcd's
#else
constexpr std::size_t kObjectLimit = kIsSanitized ? 100'000 : 200'000;
#endif
// Growth at four times the length; quadratic code needs sixteen times.
constexpr double kMaxGrowth = 11;
// Sanitizers cost a factor that says nothing of the code: with them, growth alone is the question.
constexpr double kMaxSeconds = kIsSanitized ? 120 : 20;
const kube::Time kNow = kube::Time::from_seconds(1'767'226'200);

Json json(std::string_view text) {
  auto value = kube::parse_json(text);
  if (!value) throw std::runtime_error(value.error().message);
  return std::move(*value);
}

double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// A cluster holds these objects of one job. If `suspended` is set, its JobSet is compared and
// written again.
struct Objects {
  Json runtime = json(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime", "metadata": {"name": "rt", "uid": "r",
     "annotations": {"trainer.kubeflow.org/restart-environment": "true"}},
    "spec": {"mlPolicy": {"numNodes": 2, "torch": {}}, "podGroupPolicy": {"coscheduling": {}},
     "template": {"spec": {"replicatedJobs": [
      {"name": "node", "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [
          {"name": "node", "image": "i"}]}}}}}]}}}})");
  Json trainjob = json(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
    "metadata": {"name": "j", "namespace": "ns", "uid": "t", "resourceVersion": "1"},
    "spec": {"runtimeRef": {"name": "rt"}, "suspend": true,
     "trainer": {"numNodes": 3, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
     "runtimePatches": [
      {"manager": "a.io/a", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
       {"name": "node", "template": {"spec": {"template": {
         "metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"a": "b"},
         "volumes": [{"name": "v1", "emptyDir": {}}], "containers": [
          {"name": "node", "volumeMounts": [{"name": "v1", "mountPath": "/v1"}]}]}}}}}]}}}},
      {"manager": "b.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
       {"name": "node", "template": {"spec": {"template": {
         "spec": {"nodeSelector": {"a": "c"}}}}}}]}}}}]}})");
  Json jobset = json(R"({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
    "metadata": {"name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
    "spec": {"suspend": true, "replicatedJobs": [
      {"name": "node", "template": {"spec": {"template": {"spec": {
        "containers": [{"name": "node", "image": "i"}]}}}}}],
      "failurePolicy": {"rules": [{"name": "r", "action": "FailJobSet"}]}}})");
  // One with roles of any name, and one whose pods name all others in each container.
  Json tfjob = json(R"({"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
    "metadata": {"name": "j", "namespace": "ns", "uid": "v", "resourceVersion": "1"},
    "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [
      {"name": "tensorflow", "image": "i"}]}}}}}})");
  Json xgboostjob = json(R"({"apiVersion": "kubeflow.org/v1", "kind": "XGBoostJob",
    "metadata": {"name": "j", "namespace": "ns", "uid": "v", "resourceVersion": "1"},
    "spec": {"xgbReplicaSpecs": {
     "Master": {"replicas": 1, "template": {"spec": {"containers": [
      {"name": "xgboost", "image": "i"}]}}},
     "Worker": {"replicas": 100, "template": {"spec": {"containers": [
      {"name": "xgboost", "image": "i"}]}}}}}})");
  bool is_progress_enabled = false;
};

const std::string kJobs = "/spec/template/spec/replicatedJobs";
const std::string kPod = kJobs + "/0/template/spec/template/spec";
const std::string kPodOfSet = "/spec/replicatedJobs/0/template/spec/template/spec";
const std::string kPatch =
    "/spec/runtimePatches/0/trainingRuntimeSpec/template/spec"
    "/replicatedJobs/0/template/spec/template";

// One list or map. In `item` each "@" is the item's number and each "^" the number before;
// an item that begins with a quotation mark is a member of a map.
struct Row {
  Json Objects::*object;
  std::string pointer;
  std::string item;
  // A second list of the same length, which names the items of the first.
  std::string other_pointer = {};
  std::string other_item = {};
  bool is_progress_enabled = false;
};

std::string numbered(std::string_view item, std::size_t number) {
  std::string text;
  for (const char c : item) {
    if (c == '@' || c == '^') {
      text += std::to_string(c == '@' ? number : number - 1);
    } else {
      text += c;
    }
  }
  return text;
}

// The value at an RFC 6901 pointer; members that are missing on the way are made.
Json& at_pointer(Json& object, std::string_view pointer) {
  Json* at = &object;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string token(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(token.size());
    at = at->is_array() ? &at->as_array().at(std::stoul(token)) : &(*at)[token];
  }
  return *at;
}

void put_list(Json& object, const std::string& pointer, const std::string& item,
              std::size_t length) {
  Json& list = at_pointer(object, pointer);
  const bool is_map = item.find("\": ") < item.find('{');
  std::string text(1, is_map ? '{' : '[');
  for (std::size_t i = 1; i <= length; ++i) text += (i > 1 ? "," : "") + numbered(item, i);
  // The former items of the list come last, so that a search for them passes all others.
  if (!list.empty()) {
    const std::string held = kube::print_json(list);
    text += "," + held.substr(1, held.size() - 2);
  }
  list = json(text + (is_map ? '}' : ']'));
}

Objects objects_of(const Row& row, std::size_t bytes) {
  const std::size_t length =
      bytes / (row.item.size() + row.other_item.size() + 5);  // a number has five digits
  Objects made;
  made.is_progress_enabled = row.is_progress_enabled;
  put_list(made.*row.object, row.pointer, row.item, length);
  if (!row.other_item.empty())
    put_list(made.*row.object, row.other_pointer, row.other_item, length);
  return made;
}

AdmissionRequest request(const Json& before, const Json& after) {
  AdmissionRequest made;
  made.operation = before.is_null() ? "CREATE" : "UPDATE";
  made.object = after;
  made.old_object = before;
  made.ns = "ns";
  made.kind = after.get_string("kind");
  return made;
}

AdmissionLookups lookups_of(const Objects& objects) {
  AdmissionLookups lookups;
  auto runtime = std::make_shared<const Json>(objects.runtime);
  lookups.runtime = [runtime](const std::string& kind, const std::string&, const std::string&) {
    return kind == "ClusterTrainingRuntime" ? runtime : nullptr;
  };
  lookups.claim = [](const std::string&, const std::string&) { return std::optional<Json>(); };
  return lookups;
}

void review(const Objects& objects) {
  mutate_runtime(request(Json(), objects.runtime));
  validate_runtime(request(Json(), objects.runtime), PipelineOptions(production_plugins()));
  const AdmissionLookups lookups = lookups_of(objects);
  needs_of(request(Json(), objects.trainjob), production_plugins(), &objects.runtime);
  Json changed = objects.trainjob;
  Json& patch = changed["spec"]["runtimePatches"].as_array().back()["trainingRuntimeSpec"];
  patch["template"]["metadata"] = Json::object({{"labels", Json::object({{"x", "y"}})}});
  for (const Json& before : {Json(), objects.trainjob}) {
    mutate_trainjob(request(before, changed), kNow);
    validate_trainjob(request(before, changed), lookups, PipelineOptions(production_plugins()));
  }
  for (const Json& before : {Json(), objects.jobset}) {
    mutate_jobset(request(before, objects.jobset));
    needs_of(request(before, objects.jobset), production_plugins());
    validate_jobset(request(before, objects.jobset), lookups, {});
  }
}

void plan_jobset(Json stored, bool is_suspended) {
  stored["spec"].set("suspend", is_suspended);
  const auto jobset = read_jobset(stored);
  if (!jobset) return;
  jobset::Observed observed{*jobset};
  observed.now = kNow;
  observed.decorators = production_job_decorators();
  observed.is_managed_here = true;
  const kube::Plan first = jobset::plan(observed);
  if (first.status_patch) stored["status"] = first.status_patch->get("status");
  // The claims that the first plan has created are known to the next.
  kube::NamedObjects claims;
  for (const kube::Action& action : first.actions)
    if (action.resource == kube::kPersistentVolumeClaims)
      claims.set({action.resource, action.key},
                 {.object = std::make_shared<const Json>(Json::object())});
  const auto begun = read_jobset(stored);
  REQUIRE(begun);
  jobset::Observed again{*begun};
  again.objects = &claims;
  again.now = kNow;
  again.decorators = observed.decorators;
  again.is_managed_here = true;
  jobset::plan(again);
}

void plan(const Objects& objects) {
  plan_jobset(objects.jobset, true);
  plan_jobset(objects.jobset, false);
  const auto job = read_trainjob(objects.trainjob);
  if (!job) return;
  kube::NamedObjects known;
  known.set(snapshot_object(*job), {});
  known.set(runtime_object(*job), {.content = snapshot_of(objects.runtime), .is_new = true});
  known.set({gang::coscheduling().pod_groups, {"", "j"}}, {});
  known.set({kube::kConfigMaps, {"", "j-tls-config"}}, {});
  TrainJobObserved observed{*job, objects.trainjob, known};
  observed.now = kNow;
  PipelineOptions options(production_plugins());
  options.is_progress_enabled = objects.is_progress_enabled;
  const TrainJobPlan first = plan_trainjob(observed, options);
  if (first.actions.empty()) return;
  Json stored = first.actions.back().body;
  if (stored.get_string("kind") != "JobSet") return;
  stored["metadata"].set("uid", "u");
  const auto jobset = read_jobset(stored);
  if (!jobset) return;
  observed.jobset = &*jobset;
  observed.jobset_object = &stored;
  plan_trainjob(observed, options);
  observed.jobset_owned_fields = owned_template_fields(stored);
  plan_trainjob(observed, options);
}

void work_on_v1_job(const Json& object) {
  const v1::Framework& framework = *v1::find_framework(object.get_string("kind"));
  validate_v1job(request(Json(), object), framework);
  validate_v1job(request(object, object), framework);
  const auto job = v1::read_job(object, framework.replica_specs);
  const kube::NamedObjects none;
  if (job) v1::plan({framework, *job, {}, {}, none, {}, {}, v1::Settings(), kNow});
}

// The least of some runs: other work on the machine only adds.
double seconds_for(const Objects& objects, Json Objects::*of, int runs) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = cpu_seconds();
    if (of == &Objects::tfjob || of == &Objects::xgboostjob) {
      work_on_v1_job(objects.*of);
    } else {
      review(objects);
      plan(objects);
    }
    least = std::min(least, cpu_seconds() - start);
  }
  return least;
}

const std::string kAnyJob =
    R"({"name": "j@", "template": {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}})";
const std::string kLater =
    R"({"name": "j@", "dependsOn": [{"name": "j^", "status": "Ready"}], "template": {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}})";
const std::string kWithVolume =
    R"({"name": "j@", "template": {"spec": {"template": {"spec": {"volumes": [{"name": "v"}]}}}}})";
const std::string kTrains =
    R"({"name": "j@", "template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}, "spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}})";

// The text is so long that there are fewer of them than pods are allowed.
const std::string kAnyRole =
    R"("r@": {"template": {"metadata": {"annotations": {"a": "1234567890123456789012345678901234567890123456789012345678901234567890"}}, "spec": {"containers": [{"name": "tensorflow", "image": "i"}]}}})";
const std::string kEmptyRole =
    R"("r@": {"replicas": 0, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}}})";
const std::string kPodOfV1 = "/spec/xgbReplicaSpecs/Worker/template/spec";

// Lists that the schema of TrainJob keeps short are not here. Older schemas had no limit for env.
const Row kRows[] = {
    {&Objects::runtime, kJobs, kAnyJob},
    {&Objects::runtime, kJobs, kLater},
    {&Objects::runtime, kJobs, kTrains},
    {&Objects::runtime, kJobs + "/0/dependsOn", R"({"name": "j@", "status": "Ready"})"},
    {&Objects::runtime, kJobs + "/0/template/metadata/labels", R"("l@": "")"},
    {&Objects::runtime, kJobs + "/0/template/spec/template/metadata/labels", R"("l@": "")"},
    {&Objects::runtime, kJobs + "/0/template/spec/template/metadata/annotations", R"("l@": "")"},
    {&Objects::runtime, kPod + "/containers", R"({"name": "c@"})"},
    {&Objects::runtime, kPod + "/containers", R"({"name": "c@"})", {}, {}, true},
    {&Objects::runtime, kPod + "/initContainers", R"({"name": "c@"})"},
    {&Objects::runtime, kPod + "/initContainers",
     R"({"name": "c@", "restartPolicy": "Always", "resources": {"requests": {"r@": 1}}})"},
    {&Objects::runtime, kPod + "/containers/0/env", R"({"name": "e@"})"},
    {&Objects::runtime, kPod + "/containers/0/envFrom", R"({"prefix": "e@"})"},
    {&Objects::runtime, kPod + "/containers/0/ports", R"({"containerPort": @})"},
    {&Objects::runtime, kPod + "/containers/0/args", R"({"a": @})"},
    {&Objects::runtime, kPod + "/containers/0/volumeMounts",
     R"({"name": "v@", "mountPath": "/@"})"},
    {&Objects::runtime, kPod + "/containers/0/resources/limits", R"("r@": 1)"},
    {&Objects::runtime, kPod + "/containers/0/resources/claims", R"({"name": "r@"})"},
    {&Objects::runtime, kPod + "/volumes", R"({"name": "v@", "emptyDir": {}})"},
    {&Objects::runtime, kPod + "/volumes",
     R"({"name": "v@", "persistentVolumeClaim": {"claimName": "c@"}})"},
    {&Objects::runtime, kPod + "/tolerations", R"({"key": "t@"})"},
    {&Objects::runtime, kPod + "/nodeSelector", R"("n@": "")"},
    {&Objects::runtime, kPod + "/imagePullSecrets", R"({"name": "s@"})"},
    {&Objects::runtime, kPod + "/securityContext", R"("n@": null)"},
    {&Objects::runtime, kPod + "/schedulingGates", R"({"name": "g@"})"},
    {&Objects::runtime, kPod + "/overhead", R"("r@": 1)"},
    {&Objects::runtime, "/spec/template/spec/volumeClaimPolicies",
     R"({"templates": [{"metadata": {"name": "v@"}}]})", kPod + "/containers/0/volumeMounts",
     R"({"name": "v@", "mountPath": "/@"})"},
    {&Objects::runtime, "/spec/template/spec/failurePolicy/rules",
     R"({"name": "r@", "action": "FailJobSet"})"},
    {&Objects::runtime, "/spec/template/spec/successPolicy/targetReplicatedJobs", R"("j@")"},
    {&Objects::runtime, "/spec/template/metadata/labels", R"("l@": "")"},
    {&Objects::runtime, "/spec/template/metadata/annotations", R"("l@": "")"},
    {&Objects::runtime, "/metadata/labels", R"("l@": "")"},
    {&Objects::trainjob, "/metadata/annotations", R"("l@": "")"},
    {&Objects::trainjob, "/metadata/ownerReferences", R"({"name": "o@"})"},
    {&Objects::trainjob, "/metadata/finalizers", R"("f@")"},
    {&Objects::trainjob, "/spec/trainer/env", R"({"name": "e@"})"},
    {&Objects::trainjob, "/spec/runtimePatches", R"({"manager": "a.io/a@"})"},
    {&Objects::trainjob, kPatch + "/metadata/labels", R"("l@": "")"},
    {&Objects::trainjob, kPatch + "/spec/nodeSelector", R"("l@": "")"},
    {&Objects::trainjob, kPatch + "/spec/tolerations", R"({"key": "t@"})"},
    {&Objects::trainjob, kPatch + "/spec/volumes", R"({"name": "w@", "emptyDir": {}})"},
    {&Objects::trainjob, kPatch + "/spec/containers", R"({"name": "x@"})"},
    {&Objects::trainjob, kPatch + "/spec/affinity", R"("l@": null)"},
    {&Objects::trainjob, "/spec/podTemplateOverrides",
     R"({"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"l@": ""}}})"},
    {&Objects::trainjob, "/spec/podTemplateOverrides",
     R"({"targetJobs": [{"name": "j@"}], "spec": {"nodeSelector": {"l@": ""}}})"},
    {&Objects::jobset, "/spec/replicatedJobs", kAnyJob},
    {&Objects::jobset, "/spec/replicatedJobs", kLater},
    {&Objects::jobset, "/spec/replicatedJobs", kAnyJob, "/spec/successPolicy/targetReplicatedJobs",
     R"("j@")"},
    {&Objects::jobset, "/spec/replicatedJobs", kAnyJob,
     "/spec/failurePolicy/rules/0/targetReplicatedJobs", R"("j@")"},
    {&Objects::jobset, kPodOfSet + "/containers", R"({"name": "c@"})"},
    {&Objects::jobset, kPodOfSet + "/tolerations", R"({"key": "t@"})"},
    {&Objects::jobset, kPodOfSet + "/securityContext", R"("n@": null)"},
    {&Objects::jobset, "/spec/volumeClaimPolicies",
     R"({"templates": [{"metadata": {"name": "v@"}}]})", kPodOfSet + "/containers/0/volumeMounts",
     R"({"name": "v@", "mountPath": "/@"})"},
    {&Objects::jobset, "/spec/volumeClaimPolicies",
     R"({"templates": [{"metadata": {"name": "v"}}]})", "/spec/replicatedJobs", kWithVolume},
    {&Objects::jobset, "/metadata/labels", R"("l@": "")"},
    {&Objects::jobset, "/metadata/annotations", R"("l@": "")"},
    {&Objects::jobset, "/status/conditions", R"({"type": "T@", "status": "False"})"},
    {&Objects::jobset, "/status/replicatedJobsStatus", R"({"name": "j@"})"},
    {&Objects::tfjob, "/spec/tfReplicaSpecs", kAnyRole},
    {&Objects::tfjob, "/spec/tfReplicaSpecs", kEmptyRole},
    {&Objects::tfjob, "/spec/tfReplicaSpecs/Worker/template/spec/containers",
     R"({"name": "c@", "image": "i"})"},
    {&Objects::xgboostjob, kPodOfV1 + "/containers", R"({"name": "c@", "image": "i"})"},
    {&Objects::xgboostjob, kPodOfV1 + "/initContainers", R"({"name": "c@", "image": "i"})"},
    {&Objects::xgboostjob, kPodOfV1 + "/volumes", R"({"name": "v@", "emptyDir": {}})"},
    {&Objects::xgboostjob, kPodOfV1 + "/containers/0/env", R"({"name": "MASTER_PORT"})"},
};

TEST_CASE("what is computed for a list takes time in proportion to its length", "[sizes]") {
  for (const Row& row : kRows) {
    INFO(row.pointer << " " << row.item);
    const Objects quarter = objects_of(row, kObjectLimit / 4);
    const Objects whole = objects_of(row, kObjectLimit);
    double growth = 0;
    double seconds = 0;
    // Other work on the machine may slow one of the two.
    for (int attempt = 0; attempt < 4; ++attempt) {
      seconds = seconds_for(whole, row.object, 1);
      growth = seconds / seconds_for(quarter, row.object, 2);
      if (growth < kMaxGrowth) break;
    }
    CHECK(growth < kMaxGrowth);
    CHECK(seconds < kMaxSeconds);
  }
}

}  // namespace
}  // namespace trainer::test
