// Pods of local mode report to its daemon: with the token that its API has made for them.
#include "controller/kinds/registry.hh"
#include "controller/local/report_server.hh"
#include "controller/status/token_verifier.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/model/json_text.hh"
#include "local/kinds/kinds.hh"
#include "local/tests/local_server_fixture.hh"

using namespace trainer;
using kube::Json;

namespace {

const kube::ObjectKey kReporting{"default", "j"};
const std::string kReportPath =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/j/";

Json with_owner(const std::string& text, const std::string& kind, const std::string& name,
                const std::string& uid) {
  Json object = *kube::parse_json(text);
  Json owner = Json::object({{"apiVersion", kind == "Job" ? "batch/v1" : kTrainJobs.api_version()},
                             {"kind", kind},
                             {"name", name},
                             {"uid", uid},
                             {"controller", true}});
  object["metadata"].set("ownerReferences", Json::array({std::move(owner)}));
  return object;
}

struct Reporting : test::LocalServerFixture {
  std::unique_ptr<ReportServer> reports;
  std::shared_ptr<ServerIdentity> identity;
  std::string pod_uid;

  Reporting() {
    REQUIRE(start(trainer::local::all_kinds(), {}));
    listen();
    const Json job = make(kTrainJobs, *kube::parse_json(R"({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "j", "namespace": "default"}, "spec": {"runtimeRef": {"name": "r"}}})"));
    make(kJobSets, with_owner(R"({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "j", "namespace": "default"}, "spec": {"replicatedJobs": [{"name": "w",
        "template": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
        }]}})",
                              "TrainJob", "j", kube::ObjectMeta::of(job).uid));
    // An owner that does not exist would be garbage collection's reason to delete the pod.
    const Json owner = make(kube::kJobs, *kube::parse_json(R"({"apiVersion": "batch/v1",
        "kind": "Job", "metadata": {"name": "j-w-0", "namespace": "default"}, "spec": {"template":
        {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})"));
    const Json pod = make(kube::kPods, with_owner(R"({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default",
                     "labels": {"jobset.sigs.k8s.io/jobset-name": "j"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})",
                                                  "Job", "j-w-0", kube::ObjectMeta::of(owner).uid));
    pod_uid = kube::ObjectMeta::of(pod).uid;
  }
  ~Reporting() {
    reports.reset();
    end();
  }

  void listen() {
    KindOptions kinds;
    kinds.configuration.statusServer.enabled = true;
    kinds.configuration.jobsetController.mode = JobSetControllerMode::kOwn;
    reports = std::make_unique<ReportServer>(*server, log);
    REQUIRE(reports->listen());
    reports->use(production_registry(kinds), identity = std::make_shared<ServerIdentity>());
    reports->start();
  }
  Json make(const kube::Resource& resource, Json object) {
    const auto made = create(resource, std::move(object));
    INFO((made ? "" : made.error().message));
    REQUIRE(made);
    return *kube::parse_json(*made);
  }
  std::string token(const std::string& audience) {
    Json bound = Json::object({{"kind", "Pod"}, {"name", "p"}, {"uid", pod_uid}});
    Json spec = Json::object(
        {{"audiences", Json::array({audience})}, {"boundObjectRef", std::move(bound)}});
    const auto answer =
        kube::run_task(io, client->post("/api/v1/namespaces/default/serviceaccounts/default/token",
                                        Json::object({{"spec", std::move(spec)}})));
    INFO((answer ? "" : answer.error().message));
    REQUIRE(answer);
    return std::string(answer->get("status").get_string("token"));
  }
  // Returns the status of the answer.
  int send(const std::string& bearer, const std::string& last = "status") {
    kube::ClientConfig config;
    config.server = "https://" + identity->host + ":" + std::to_string(reports->port());
    config.ca_pem = identity->ca_pem;
    config.token = kube::Secret<std::string>(bearer);
    const auto https = kube::make_transport(io, config, kube::TransportLimits());
    kube::HttpRequest request("POST", kReportPath + last);
    request.content_type = "application/json";
    request.body = R"({"trainerStatus": {"progressPercentage": 42,
        "lastUpdatedTime": "2026-08-20T10:00:00Z"}})";
    const auto answer = kube::run_task(io, https->send(std::move(request)));
    REQUIRE(answer);
    return answer->status;
  }
  std::int64_t progress() {
    const auto job = kube::run_task(io, client->get(kTrainJobs, kReporting));
    REQUIRE(job);
    return job->get_path({"status", "trainerStatus"}).get_int("progressPercentage", -1);
  }
};

}  // namespace

TEST_CASE_METHOD(Reporting, "a report of a pod of local mode is in the status of its job",
                 "[local]") {
  const std::string own = token(status_audience(kReporting));
  CHECK(send(own) == 200);
  CHECK(progress() == 42);
  // No controller runs here that leads.
  CHECK(send(own, "heartbeat") == 421);
}

TEST_CASE_METHOD(Reporting, "a report of local mode without the job's own token is refused",
                 "[local]") {
  CHECK(send(token(status_audience({"default", "other"}))) == 403);
  CHECK(send(token("trainer")) == 403);
  CHECK(send(server->access().token.reveal()) == 403);
  CHECK(send("") == 403);
  const std::string own = token(status_audience(kReporting));
  kube::DeleteOptions now;
  now.grace_seconds = 0;
  REQUIRE(kube::run_task(io, client->remove(kube::kPods, {"default", "p"}, now)));
  CHECK(send(own) == 403);
  CHECK(progress() == -1);
}

TEST_CASE_METHOD(Reporting, "the server of reports keeps its port", "[local]") {
  const auto port = reports->port();
  reports.reset();
  listen();
  CHECK(reports->port() == port);
  // Another program has it meanwhile, so it moves, and stays there.
  ReportServer other(*server, log);
  REQUIRE(other.listen());
  CHECK(other.port() != port);
  CHECK(kept_port(server->state(), kReportsPortFile) == other.port());
}
