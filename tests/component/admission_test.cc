// Admission over real TLS: reviews from a client that trusts only this controller's CA, lookups on
// a scripted API server.
#include "controller/admission/admission.hh"

#include "controller/admission/webhook.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/component/admission_fixture.hh"
#include "tests/component/captured_errors.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using namespace trainer::test;
using kube::Json;

namespace {

const char* const kRuntimesPath = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/";

// A runtime that admission accepts.
std::string runtime_text(const std::string& name) {
  const auto yaml = kube::parse_yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: )" + name + R"(, resourceVersion: "5", uid: u1}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        replicas: 1
        groupName: default
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: "example/image:1"}]}}}
)");
  REQUIRE(yaml);
  return kube::print_json(*yaml);
}

Json trainjob_of(const std::string& runtime) {
  const auto yaml = kube::parse_yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: team-a, uid: job-uid}
spec: {runtimeRef: {apiGroup: trainer.kubeflow.org, kind: ClusterTrainingRuntime, name: )" +
                                     runtime + "}}");
  REQUIRE(yaml);
  return *yaml;
}

struct Fixture : AdmissionFixture {
  using AdmissionFixture::AdmissionFixture;
  void publish_runtime(const std::string& name) {
    const std::string text = runtime_text(name);
    auto stored = kube::StoredObjectTransform(kClusterTrainingRuntimes)(text);
    REQUIRE(stored);
    const kube::ObjectKey key = stored->key();
    state.set(kClusterTrainingRuntimes, key, std::move(stored));
  }
};

kube::Task<kube::Result<AdmissionAnswer>> refuse_at_length(AdmissionRequest, AdmissionReader&) {
  AdmissionAnswer answer;
  answer.is_allowed = false;
  answer.message = std::string(5'000, 'x');
  co_return answer;
}

kube::Task<kube::Result<AdmissionAnswer>> throw_always(AdmissionRequest, AdmissionReader&) {
  throw std::runtime_error("a bug");
  co_return AdmissionAnswer();
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a runtime that is cached costs no request") {
  publish_runtime("torch");
  CHECK(ask(kValidateTrainJob, review_of(trainjob_of("torch"))).get_bool("allowed"));
  CHECK(api.log().empty());
}

TEST_CASE_METHOD(
    Fixture, "a runtime that the view lacks is read from the API server, since the view may lag") {
  api.on("GET", std::string(kRuntimesPath) + "torch").answer(200, runtime_text("torch")).always();
  CHECK(ask(kValidateTrainJob, review_of(trainjob_of("torch"))).get_bool("allowed"));
  CHECK(api.log().size() == 1);
}

TEST_CASE_METHOD(Fixture, "a runtime that does not exist is a refusal that names it") {
  const Json response = ask(kValidateTrainJob, review_of(trainjob_of("nowhere")));
  CHECK_FALSE(response.get_bool("allowed"));
  CHECK(response.find("status")->get_int("code") == 403);
  CHECK(response.find("status")->get_string("message").find("nowhere") != std::string_view::npos);
}

TEST_CASE_METHOD(Fixture, "a lookup that fails is a refusal that can be retried") {
  api.on("GET", std::string(kRuntimesPath) + "torch")
      .answer(
          403,
          R"({"kind":"Status","status":"Failure","message":"not for you","reason":"Forbidden","code":403})")
      .always();
  const Json response = ask(kValidateTrainJob, review_of(trainjob_of("torch")));
  CHECK_FALSE(response.get_bool("allowed"));
  CHECK(response.find("status")->get_int("code") == 500);
  CHECK(response.find("status")->get_string("message").find("not for you") !=
        std::string_view::npos);
  const std::lock_guard lock(mutex);
  CHECK(outcomes == std::map<std::string, int>{{"error", 1}});
}

TEST_CASE_METHOD(Fixture,
                 "an update is validated with the job's own snapshot, if that is unchanged") {
  publish_runtime("torch");
  // The job was started when the runtime's replicated job had another name.
  Json then = *kube::parse_json(runtime_text("torch"));
  then["spec"]["template"]["spec"]["replicatedJobs"].as_array()[0].set("name", "of-old");
  const std::string text = kube::print_json(then);
  Json before = trainjob_of("torch");
  before["spec"].set("suspend", true);
  Json after = before;
  after["spec"].set("runtimePatches", *kube::parse_json(R"([{"manager":"acme.io/x",
      "trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"of-old",
      "template":{"spec":{"template":{"spec":{"nodeSelector":{"pool":"a"}}}}}}]}}}}])"));

  struct Row {
    const char* why;
    std::string owner_uid;
    std::string hash_in_status;
    bool is_validator;
  };
  const Row row = GENERATE_COPY(
      Row{"its own", "job-uid", "", true}, Row{"another's", "other-uid", "", false},
      Row{"the text whose hash the status has", "job-uid", kube::sha256_hex(text), true},
      Row{"edited since", "job-uid", kube::sha256_hex("what it was"), false});
  CAPTURE(row.why);
  if (!row.hash_in_status.empty()) before["status"].set("runtimeSnapshotHash", row.hash_in_status);
  const Json owner = Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                                   {"kind", "TrainJob"},
                                   {"name", "j"},
                                   {"uid", row.owner_uid},
                                   {"controller", true}});
  const Json snapshot =
      Json::object({{"metadata", Json::object({{"name", "j-runtime-snapshot"},
                                               {"namespace", "team-a"},
                                               {"ownerReferences", Json::array({owner})}})},
                    {"data", Json::object({{"runtime", text}})}});
  const std::string snapshot_path = "/api/v1/namespaces/team-a/configmaps/j-runtime-snapshot";
  api.on("GET", snapshot_path).answer(200, kube::print_json(snapshot)).always();

  const Json response = ask(kValidateTrainJob, review_of(after, before));
  CHECK(response.get_bool("allowed") == row.is_validator);
  if (!row.is_validator) {
    // The live runtime is invalid: it has no such job.
    CHECK_THAT(std::string(response.find("status")->get_string("message")),
               Catch::Contains("replicatedJobs[0].name: Invalid value: \"of-old\"") &&
                   Catch::EndsWith("jobs of ClusterTrainingRuntime \"torch\": node"));
  }
  CHECK(api.lines() ==
        std::vector<std::string>{"GET " + snapshot_path,
                                 "GET /apis/jobset.x-k8s.io/v1alpha2/namespaces/team-a/jobsets/j"});
}

TEST_CASE_METHOD(Fixture, "changed patches ask whether the job's pods still run") {
  publish_runtime("torch");
  Json changed = trainjob_of("torch");
  changed["spec"]["suspend"] = true;
  changed["spec"]["runtimePatches"].push_back(Json::object({{"manager", "acme.io/x"}}));
  const std::string jobset_path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team-a/jobsets/j";
  api.on("GET", jobset_path)
      .answer(
          200,
          R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"j","ownerReferences":
          [{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","name":"j","uid":"job-uid","controller":true}]},
          "status":{"replicatedJobsStatus":[{"name":"node","ready":0,"succeeded":0,"failed":0,"active":2,"suspended":0}]}})")
      .always();
  const Json response = ask(kValidateTrainJob, review_of(changed, trainjob_of("torch")));
  CHECK_FALSE(response.get_bool("allowed"));
  CHECK(response.find("status")->get_string("message").find("still active") !=
        std::string_view::npos);
}

TEST_CASE_METHOD(kube::test::ScriptedPeer, "refused reviews do not fill the log") {
  const kube::Log info{kube::LogLevel::kInfo, kube::Log::Format::kText};
  WebhookHandler handler;
  handler.path = "/refuse";
  handler.handle = refuse_at_length;
  const AdmissionState state;
  Admission admission({handler}, client, state, info);
  kube::ServerRequest request;
  request.method = "POST";
  request.path = handler.path;
  request.body = review_of(trainjob_of("torch"));
  const auto refuse = [&](int count) {
    for (int i = 0; i < count; ++i)
      CHECK(kube::run_task(io, admission.handle(request)).body.find(std::string(5'000, 'x')) !=
            std::string::npos);
  };
  const CapturedErrors log_lines;
  refuse(30);
  CHECK(log_lines.count("admission refused") == 10);
  clock.advance(std::chrono::seconds(2));
  refuse(10);
  CHECK(log_lines.count("admission refused") == 12);
  CHECK(log_lines.count(std::string(1'024, 'x')) == 12);
  CHECK(log_lines.count(std::string(1'025, 'x')) == 0);
}

TEST_CASE_METHOD(kube::test::ScriptedPeer, "each review that begins also ends, whatever ends it") {
  std::vector<std::string> seen;
  std::vector<WebhookHandler> handlers(2);
  handlers[0].path = "/refuse";
  handlers[0].handle = refuse_at_length;
  handlers[1].path = "/throw";
  handlers[1].handle = throw_always;
  const AdmissionState state;
  Admission admission(
      handlers, client, state, log,
      [&](std::string_view path, std::string_view outcome, auto) {
        seen.push_back(std::string(path) + " " + std::string(outcome));
      },
      [&](std::string_view path) { seen.push_back(std::string(path)); });
  const auto send = [&](const std::string& path, const std::string& body) {
    kube::ServerRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    return kube::run_task(io, admission.handle(std::move(request)));
  };
  const std::string body = review_of(trainjob_of("torch"));
  send("/refuse", body);
  CHECK_THROWS_AS(send("/throw", body), std::runtime_error);
  send("/refuse", "{");      // not a review
  send("/elsewhere", body);  // no webhook
  CHECK(seen == std::vector<std::string>{"/refuse", "/refuse denied", "/throw", "/throw panic"});
}

TEST_CASE_METHOD(Fixture, "hostile bodies are answered 400 and change nothing for others") {
  publish_runtime("torch");
  const std::string deep(100'000, '[');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("null"), std::string("[]"), std::string("{}"),
        deep, std::string("{\"request\":7}"), std::string("\xff\xfe"),
        std::string(R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})"),
        std::string(R"({"a":1,"a":2})")}) {
    CAPTURE(body.substr(0, 60));
    for (const std::string_view path : {kMutateTrainJob, kValidateTrainJob, kValidateJobSet}) {
      const auto answer = send("POST", path, body);
      REQUIRE(answer);
      CHECK(answer->status == 400);
    }
  }
  CHECK(ask(kValidateTrainJob, review_of(trainjob_of("torch"))).get_bool("allowed"));
}

TEST_CASE_METHOD(Fixture, "bodies that are large, or become large when parsed, are refused") {
  publish_runtime("torch");
  std::string values = "[0";
  for (int i = 1; i < 300'000; ++i) values += ",0";
  const auto many = send("POST", kValidateTrainJob, values + "]");
  REQUIRE(many);
  CHECK(many->status == 400);
  CHECK_THAT(many->body, Catch::Contains("more than 300000 values"));
  const auto longest = send("POST", kValidateTrainJob, std::string(7U << 20, ' '));
  REQUIRE(longest);
  CHECK(longest->status == 400);
  // The connection may end before the answer is read.
  const auto too_long = send("POST", kValidateTrainJob, std::string((7U << 20) + 1, ' '));
  CHECK((!too_long || too_long->status == 413));
  // It has twice etcd's size.
  Json job = trainjob_of("torch");
  job["metadata"]["annotations"].set("long", std::string(1'500'000, 'x'));
  CHECK(ask(kMutateTrainJob, review_of(job, job)).get_bool("allowed"));
}

TEST_CASE_METHOD(Fixture, "objects of any shape are answered without a crash") {
  publish_runtime("torch");
  for (const char* text :
       {"7", "[]", "{}", R"({"kind":"TrainJob","metadata":7,"spec":[]})",
        R"({"kind":"TrainJob","metadata":{"name":"j"},"spec":{"runtimeRef":"x","trainer":3,
                              "runtimePatches":[1,{"manager":2}]}})",
        R"({"kind":"JobSet","spec":{"replicatedJobs":{"a":1}}})"}) {
    CAPTURE(text);
    const Json object = *kube::parse_json(text);
    for (const std::string_view path :
         {kMutateTrainJob, kValidateTrainJob, kMutateRuntime, kValidateRuntime,
          kMutateClusterRuntime, kValidateClusterRuntime, kMutateJobSet, kValidateJobSet}) {
      CAPTURE(path);
      const auto created = send("POST", path, review_of(object));
      REQUIRE(created);
      CHECK(created->status < 500);
      const auto updated = send("POST", path, review_of(object, object));
      REQUIRE(updated);
      CHECK(updated->status < 500);
    }
  }
}

TEST_CASE_METHOD(Fixture, "a review of many claims is answered after few requests") {
  Json templates = Json::array({});
  for (int i = 0; i < 500; ++i) {
    templates.push_back(
        Json::object({{"metadata", Json::object({{"name", "claim-" + std::to_string(i)}})},
                      {"spec", Json::object()}}));
  }
  Json jobset = *kube::parse_json(R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
      "metadata":{"name":"js","namespace":"team-a"},"spec":{"replicatedJobs":[]}})");
  jobset["spec"]["volumeClaimPolicies"].push_back(
      Json::object({{"templates", std::move(templates)}}));
  ask(kValidateJobSet, review_of(jobset));
  CHECK(api.lines().size() > 0);
  CHECK(api.lines().size() <= 20);
}

TEST_CASE("reviews of clients without the certificate are not read") {
  const kube::CertificateBundle client = certificates();
  ServingOptions options;
  options.client_ca_pem = client.ca_certificate;
  Fixture fixture(KindOptions(), options);
  const auto refused = fixture.send("POST", kValidateTrainJob, review_of(trainjob_of("torch")));
  REQUIRE(refused);
  CHECK(refused->status == 401);
  CHECK(fixture.api.lines().empty());
  CHECK(fixture.outcomes.empty());
  kube::ClientConfig config;
  config.client_certificate_pem = client.ca_certificate;  // the other is for servers alone
  config.client_key_pem = client.ca_key;
  fixture.connect(fixture.bundle, config);
  CHECK(fixture.send("POST", kValidateTrainJob, review_of(trainjob_of("torch")))->status == 200);
}

TEST_CASE_METHOD(Fixture, "only known paths and POST are served") {
  CHECK(send("POST", "/", "{}")->status == 404);
  CHECK(send("POST", "/validate", "{}")->status == 404);
  CHECK(send("GET", kValidateTrainJob, "")->status == 405);
}

TEST_CASE_METHOD(Fixture, "a mutation is answered as a JSON Patch") {
  Json job = trainjob_of("torch");
  job["spec"]["runtimePatches"].push_back(Json::object({{"manager", "acme.io/x"}}));
  const Json response = ask(kMutateTrainJob, review_of(job));
  CHECK(response.get_bool("allowed"));
  CHECK(response.get_string("patchType") == "JSONPatch");
  CHECK_FALSE(response.get_string("patch").empty());
}

TEST_CASE("JobSets are left to the upstream controller while it runs") {
  const Json bad = *kube::parse_json(R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
      "metadata":{"name":"js","namespace":"team-a"},"spec":{"replicatedJobs":[{"name":"a","replicas":1,
      "template":{"spec":{"template":{"spec":{"containers":[]}}}},"dependsOn":[{"name":"b","status":"Ready"}]}]}})");
  Fixture own;
  CHECK_FALSE(own.ask(kValidateJobSet, review_of(bad)).get_bool("allowed"));
  KindOptions options;
  options.configuration.jobsetController.mode = JobSetControllerMode::kShare;
  Fixture shared(options);
  CHECK(shared.ask(kValidateJobSet, review_of(bad)).get_bool("allowed"));
  CHECK(shared.ask(kMutateJobSet, review_of(bad)).find("patch") == nullptr);
}

TEST_CASE_METHOD(Fixture, "certificates change while the server runs") {
  publish_runtime("torch");
  const kube::CertificateBundle next = certificates();
  REQUIRE(kube::run_task(io, serving->set_certificates(next)));
  // A client that trusts only the old CA cannot open new connections.
  connect(bundle);
  CHECK_FALSE(send("POST", kValidateTrainJob, review_of(trainjob_of("torch"))));
  connect(next);
  CHECK(ask(kValidateTrainJob, review_of(trainjob_of("torch"))).get_bool("allowed"));
  kube::CertificateBundle broken = next;
  broken.certificate = "rubbish";
  CHECK_FALSE(kube::run_task(io, serving->set_certificates(broken)));
  connect(next);
  CHECK(ask(kValidateTrainJob, review_of(trainjob_of("torch"))).get_bool("allowed"));
}

TEST_CASE_METHOD(Fixture, "after the end no client is served") {
  serving->stop();
  CHECK_FALSE(serving->is_listening());
  CHECK_FALSE(send("POST", kValidateTrainJob, "{}"));
  CHECK_FALSE(kube::run_task(io, serving->set_certificates(bundle)));
  serving->stop();
}
