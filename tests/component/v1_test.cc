// V1 jobs: what enqueues a job, what a reconcile sends, and what is registered when.
#include <algorithm>
#include <set>

#include "controller/registration/cluster_role.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kPyTorchJobsPath = "/apis/kubeflow.org/v1/namespaces/n/pytorchjobs";
const std::string kV1Pods = "/api/v1/namespaces/n/pods";
const std::string kV1Services = "/api/v1/namespaces/n/services";
const std::string kScalers = "/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers";
const std::string kGroups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/n/podgroups";
const char* const kController = "pytorchjob-controller";

KindOptions v1_jobs(const std::string& gang_scheduler = "") {
  KindOptions options = trainer::test::own_jobsets();
  options.configuration.trainingOperator.schemes = *v1::enabled_frameworks({});
  options.configuration.trainingOperator.settings.gang_scheduler = gang_scheduler;
  return options;
}

const std::string kTemplate =
    R"("template":{"spec":{"containers":[{"name":"pytorch","image":"i"}]}})";

std::string v1_job(const std::string& version, const std::string& more = "",
                   const std::string& status = "{}") {
  return R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"p",
      "namespace":"n","uid":"u1","generation":1,"resourceVersion":")" +
         version + R"("},"spec":{)" + more + R"("pytorchReplicaSpecs":{"Master":{"replicas":1,)" +
         kTemplate + R"(},"Worker":{"replicas":1,)" + kTemplate + R"(}}},"status":)" + status + "}";
}

// Returns a child of the job with uid u1; `more` is the status and other members.
std::string owned(const std::string& ns, const std::string& name, const std::string& version,
                  const std::string& more) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":")" + ns + R"(","uid":"u-)" + name +
         R"(","resourceVersion":")" + version +
         R"(","labels":{"training.kubeflow.org/job-name":"p",
           "training.kubeflow.org/replica-type":"worker","training.kubeflow.org/replica-index":"0"},
         "ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","name":"p",
           "uid":"u1","controller":true}]})" +
         more + "}";
}

std::string pod(const std::string& ns, const std::string& version, const std::string& phase) {
  return owned(ns, "p-worker-0", version, R"(,"status":{"phase":")" + phase + R"("})");
}

struct V1Fixture : trainer::test::IdleManager {
  int version = 100;
  std::size_t seen = 0;

  explicit V1Fixture(const KindOptions& options = v1_jobs()) : IdleManager(options) {
    for (const std::string& path : {kV1Pods, kV1Services, kScalers, kGroups})
      api.on("POST", path).always().reply([this](const kube::ReceivedRequest& request) {
        return stored(request);
      });
    api.on("GET", kV1Services + "/p").always().reply([this](const auto&) {
      return foreign_service.empty()
                 ? kube::ScriptedReply(404, R"({"reason":"NotFound","code":404})")
                 : kube::ScriptedReply(200, foreign_service);
    });
    api.on("PATCH", kPyTorchJobsPath + "/p/status").always().reply([this](const auto& request) {
      const auto patch = kube::parse_json(request.body);
      status = kube::test::merge_patch(status, *patch->find("status"));
      if (has_upstreams_crds)
        for (const char* member : {"restarts", "restartedPods", "firstFailure"})
          status.erase(member);
      return kube::ScriptedReply(200,
                                 v1_job(std::to_string(++version), more, kube::print_json(status)));
    });
    see();
  }
  void see() {
    REQUIRE(cache<kube::StoredObject>(all_of(pytorch())).upsert(v1_job("5", more)));
    enqueued.clear();
  }
  static const kube::Resource& pytorch() { return v1::find_framework("pytorchjob")->resource; }
  kube::ScriptedReply stored(const kube::ReceivedRequest& request) {
    Json object = *kube::parse_json(request.body);
    const std::string name(object.get("metadata").get_string("name"));
    object["metadata"]
        .set("uid", "u-" + name)
        .set("resourceVersion", std::to_string(++version))
        .set("namespace", "n");
    if (request.path == kV1Pods) object["status"].set("phase", "Pending");
    return {201, kube::print_json(object)};
  }
  // Returns what a reconcile has sent, in order of the text.
  std::vector<std::string> sent() {
    REQUIRE(reconcile(kController, {"n", "p"}));
    std::vector<std::string> lines;
    for (; seen < api.log().size(); ++seen) {
      const auto& request = api.log()[seen];
      const auto body = kube::parse_json(request.body);
      const std::string name(body ? body->get("metadata").get_string("name") : "");
      lines.push_back(request.method + " " + request.path + (name.empty() ? "" : " " + name));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  std::string more;  // members of the spec, each with a comma
  Json status = Json::object();
  bool has_upstreams_crds = false;
  std::string foreign_service;  // it has the name of the job
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(V1Fixture, "a job gets its pods and Services, then its status, and then nothing") {
  CHECK(sent() == Lines{"GET " + kV1Services + "/p", "PATCH " + kPyTorchJobsPath + "/p/status",
                        "POST " + kV1Pods + " p-master-0", "POST " + kV1Pods + " p-worker-0",
                        "POST " + kV1Services + " p", "POST " + kV1Services + " p-master-0",
                        "POST " + kV1Services + " p-worker-0"});
  CHECK(sent().empty());
  for (const std::string& each : enqueued) CHECK_THAT(each, !Catch::Contains("for counters"));
  CHECK_THAT(metrics.render(), Catch::Contains("training_operator_jobs_created_total{framework="
                                               "\"pytorch\",job_namespace=\"n\"} 1"));
}

TEST_CASE_METHOD(V1Fixture, "a Service of another owner that has the job's name is read once") {
  foreign_service = R"({"metadata":{"name":"p","uid":"u"}})";
  const Lines lines = sent();
  CHECK(std::count(lines.begin(), lines.end(), "GET " + kV1Services + "/p") == 1);
  CHECK(std::count(lines.begin(), lines.end(), "POST " + kV1Services + " p") == 0);
  CHECK(lines.size() == 6);
  CHECK(sent().empty());
  REQUIRE(cache<v1::V1PodView>(v1_pods()).upsert(pod("n", "200", "Failed")));
  api.on("DELETE", kV1Pods + "/p-worker-0").always().answer(200, "{}");
  CHECK(sent() ==
        Lines{"DELETE " + kV1Pods + "/p-worker-0", "PATCH " + kPyTorchJobsPath + "/p/status"});
}

TEST_CASE_METHOD(V1Fixture, "M8: a job that is gone is left alone") {
  sent();
  REQUIRE(cache<kube::StoredObject>(all_of(pytorch())).remove(v1_job("200")));
  CHECK(sent().empty());
  // Its pods end after it.
  REQUIRE(cache<v1::V1PodView>(v1_pods()).upsert(pod("n", "12", "Failed")));
  CHECK(sent().empty());
  for (const v1::Framework* framework : v1::frameworks())
    REQUIRE(reconcile(std::string(framework->singular) + "-controller", {"n", "never"}));
  CHECK(sent().empty());
}

TEST_CASE_METHOD(V1Fixture, "with upstream's CRDs a status is written once, and restarts count") {
  has_upstreams_crds = true;
  more = R"("runPolicy":{"backoffLimit":1},)";
  REQUIRE(cache<kube::StoredObject>(all_of(pytorch())).upsert(v1_job("6", more)));
  api.on("DELETE", kV1Pods + "/p-worker-0").always().answer(200, "{}");
  sent();
  auto& pods = cache<v1::V1PodView>(v1_pods());
  const auto failed = [this](const char* uid) {
    Json made = *kube::parse_json(pod("n", std::to_string(++version), "Failed"));
    made["metadata"].set("uid", uid);
    return kube::print_json(made);
  };
  REQUIRE(pods.upsert(failed("u-first")));
  const Lines both{"DELETE " + kV1Pods + "/p-worker-0", "PATCH " + kPyTorchJobsPath + "/p/status"};
  CHECK(sent() == both);
  CHECK(sent() == Lines{both[0]});  // it is there still
  CHECK(status.find("conditions"));
  CHECK_FALSE(status.find("restarts"));
  REQUIRE(pods.remove(failed("u-first")));
  CHECK(sent() == Lines{both[1], "POST " + kV1Pods + " p-worker-0"});
  CHECK(sent().empty());
  REQUIRE(pods.upsert(failed("u-second")));
  CHECK(sent() == Lines{both[1]});
  CHECK_THAT(kube::print_json(status), Catch::Contains("reached the specified backoff limit"));
}

TEST_CASE_METHOD(V1Fixture, "what enqueues a job") {
  auto& pods = cache<v1::V1PodView>(v1_pods());
  auto& services = cache<kube::StoredObject>(v1_services());
  const auto name = [](const char* when) { return std::string(kController) + " n/p " + when; };
  REQUIRE(pods.upsert(pod("n", "10", "Pending")));  // its own creation
  REQUIRE(pods.upsert(pod("n", "11", "Pending")));  // nothing that is read
  REQUIRE(services.upsert(owned("n", "p-worker-0", "10", "")));
  for (const char* phase : {"Pending", "Running", "Failed"})  // pods of another namespace
    REQUIRE(pods.upsert(pod("elsewhere", std::to_string(++version), phase)));
  CHECK(enqueued.empty());
  REQUIRE(pods.upsert(pod("n", "12", "Running")));
  REQUIRE(pods.upsert(pod("n", "13", "Failed")));
  REQUIRE(pods.remove(pod("n", "14", "Failed")));
  REQUIRE(services.remove(owned("n", "p-worker-0", "11", "")));
  CHECK(enqueued == Lines{name("for counters"), name("soon"), name("soon"), name("soon")});
}

TEST_CASE_METHOD(V1Fixture, "an autoscaler is read once, and made where there is none") {
  more = R"("elasticPolicy":{"minReplicas":1,"maxReplicas":4,"metrics":[{"type":"Resource",
      "resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]},)";
  REQUIRE(cache<kube::StoredObject>(all_of(pytorch())).upsert(v1_job("6", more)));
  api.on("GET", kScalers + "/p").always().answer(404, R"({"reason":"NotFound","code":404})");
  const Lines lines = sent();
  CHECK(std::count(lines.begin(), lines.end(), "GET " + kScalers + "/p") == 1);
  CHECK(std::count(lines.begin(), lines.end(), "POST " + kScalers + " p") == 1);
  CHECK(sent().empty());
}

TEST_CASE_METHOD(V1Fixture, "an MPIJob goes on once another owner's object of its name is gone") {
  const std::string path = "/apis/kubeflow.org/v1/namespaces/n/mpijobs/m/status";
  const std::string config_maps = "/api/v1/namespaces/n/configmaps";
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/n/";
  for (const std::string& each : {config_maps, std::string("/api/v1/namespaces/n/serviceaccounts"),
                                  rbac + "roles", rbac + "rolebindings"})
    api.on("POST", each).always().reply([this](const kube::ReceivedRequest& request) {
      return stored(request);
    });
  api.on("PATCH", path).always().answer(200, "{}");
  const std::string launcher = R"({"replicas":1,"template":{"spec":{"containers":[
      {"name":"c","image":"i"}]}}})";
  const kube::Resource& jobs = v1::find_framework("mpijob")->resource;
  REQUIRE(
      cache<kube::StoredObject>(all_of(jobs))
          .upsert(
              R"({"apiVersion":"kubeflow.org/v1","kind":"MPIJob","metadata":{"name":"m","namespace":"n",
      "uid":"u9","resourceVersion":"5"},"spec":{"mpiReplicaSpecs":{"Launcher":)" +
              launcher + "}}}"));
  api.on("GET", config_maps + "/m-config")
      .answer(200, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m-config",
      "namespace":"n","uid":"other","resourceVersion":"6"}})");
  const auto pods = [this] {
    REQUIRE(reconcile("mpijob-controller", {"n", "m"}));
    const auto lines = api.lines();
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("POST " + kV1Pods);
    });
  };
  CHECK(pods() == 0);
  CHECK(pods() == 1);
}

TEST_CASE("with Volcano pods wait until their PodGroup is queued") {
  V1Fixture peer(v1_jobs("volcano"));
  CHECK(peer.sent() == Lines{"PATCH " + kPyTorchJobsPath + "/p/status", "POST " + kGroups + " p"});
  auto& groups = peer.cache<kube::StoredObject>(all_of(gang::volcano().pod_groups));
  const auto found = groups.find({"n", "p"});
  REQUIRE(found);
  Json queued = *found->object();
  queued["metadata"].set("resourceVersion", "900");
  queued["status"].set("phase", "Inqueue");
  peer.enqueued.clear();
  REQUIRE(groups.upsert(kube::print_json(queued)));
  CHECK(peer.enqueued == Lines{std::string(kController) + " n/p soon"});
  const Lines lines = peer.sent();
  CHECK(std::count(lines.begin(), lines.end(), "POST " + kV1Pods + " p-master-0") == 1);
}

TEST_CASE("what why and logs say of a V1 job") {
  struct Row {
    const char* status;
    const char* phase;
    const char* says;  // in message, evidence or the next step
    bool is_failed;
  };
  const Row rows[] = {
      {"{}", "", "no controller has reconciled this job yet", false},
      {R"({"conditions":[{"type":"Created","status":"True"}]})", "Created", "0 of 2 pods run",
       false},
      {R"({"conditions":[{"type":"Created","status":"True"},{"type":"Running","status":"True"}],
          "replicaStatuses":{"Master":{"active":1}}})",
       "Running", "--gang-scheduler-name", false},
      {R"({"conditions":[{"type":"Running","status":"False"},{"type":"Failed","status":"True",
          "reason":"PyTorchJobFailed","message":"it is failed"}]})",
       "Failed", "trainer logs -n n pytorchjob/p", true},
      {R"({"conditions":[{"type":"Suspended","status":"True"}]})", "Suspended",
       "spec.runPolicy.suspend", false},
  };
  const Registry registry = full_registry();
  const auto kind = std::find_if(registry.begin(), registry.end(), [](const auto& each) {
    return each.controller.name == kController;
  });
  REQUIRE(kind != registry.end());
  for (const Row& row : rows) {
    CAPTURE(row.status);
    const auto state =
        kind->why->read_state(*kube::parse_json(v1_job("5", "", row.status)), "trainer");
    REQUIRE(state);
    CHECK(state->phase == row.phase);
    CHECK(state->is_failed == row.is_failed);
    std::string all = state->message + state->next_step;
    for (const std::string& each : state->evidence) all += each;
    CHECK_THAT(all, kube::test::contains(row.says));
  }
  const auto meta = kube::ObjectMeta::of(*kube::parse_json(pod("n", "1", "Running")));
  const auto place = kind->logs->read_place(meta);
  REQUIRE(place);
  CHECK(place->role == "worker");
  CHECK(place->index == 0);
  CHECK_FALSE(kind->logs->read_place({}));
}

TEST_CASE(
    "kinds of V1 jobs are registered where they are asked for, and TrainJobs may be left out") {
  const auto names = [](const KindOptions& options) {
    std::set<std::string> all;
    for (const KindRegistration& kind : production_registry(options))
      all.insert(kind.controller.name);
    return all;
  };
  const std::set<std::string> usual{"trainjob_controller", "jobset", "pod"};
  CHECK(names(KindOptions()) == usual);
  CHECK(names(v1_jobs()).size() == usual.size() + 6);
  KindOptions alone = v1_jobs();
  alone.configuration.trainingOperator.only = true;
  alone.configuration.trainingOperator.schemes = *v1::enabled_frameworks({"TFJob"});
  CHECK(names(alone) == std::set<std::string>{"tfjob-controller"});
  const Registry registry = production_registry(alone);
  CHECK_FALSE(has_mutating_webhooks(registry));
  // Rights of V1 jobs are apart from those of every installation.
  CHECK(cluster_role(full_registry()) == cluster_role(production_registry(KindOptions())));
  CHECK_THAT(cluster_role(registry, "v1"),
             Catch::Contains("resources: [tfjobs]\n  verbs: [delete, get, list, watch]") &&
                 Catch::Contains("resourceNames: [validator.training-operator.kubeflow.org]") &&
                 !Catch::Contains("mutatingwebhookconfigurations"));
}
