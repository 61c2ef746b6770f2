// Jobs of the charts run these commands: `trainer crds --apply`, `trainer runtimes --apply` and
// `--remove-unused`, `trainer check`, here against a scripted API server.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "api/runtime.hh"
#include "controller/cli/commands.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/tests/scripted_server.hh"
#include "tests/component/command_run.hh"
#include "tests/support/catch.hh"

using namespace trainer;
namespace fs = std::filesystem;

namespace {

const std::string kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
const std::string kRuntimes = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes";
const std::string kTrainJobsPath = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs";
const std::string kServed =
    R"({"metadata":{"name":"x"},"status":{"conditions":[{"type":"Established","status":"True"}]}})";

std::string list(const std::string& items) {
  return R"({"metadata":{"resourceVersion":"9"},"items":[)" + items + "]}";
}

std::string runtime(const std::string& name) {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u-)" + name + R"("}})";
}

std::string job(const std::string& ref, const std::string& condition = "") {
  return R"({"metadata":{"name":"j","namespace":"n"},"spec":{"runtimeRef":)" + ref +
         R"(},"status":{"conditions":[)" + condition + "]}}";
}

struct InstallFixture {
  kube::asio::io_context io;
  kube::ScriptedServer api{io};
  fs::path folder = fs::temp_directory_path() / ("trainer-install-" + std::to_string(::getpid()));
  ClusterOptions cluster;
  int code = -1;

  InstallFixture() {
    fs::create_directories(folder);
    cluster.kubeconfig = (folder / "config").string();
    std::ofstream(cluster.kubeconfig)
        << "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
           "clusters: [{name: c, cluster: {server: '"
        << api.config().server << "'}}]\nusers: [{name: u, user: {}}]\n";
  }
  InstallFixture(const InstallFixture&) = delete;
  InstallFixture& operator=(const InstallFixture&) = delete;
  ~InstallFixture() { fs::remove_all(folder); }

  std::string run(const std::function<int(Console&)>& command) {
    test::CommandRun done = test::run_beside(io, command);
    code = done.code;
    return std::move(done.said);
  }
  std::string apply_crds(const CrdsOptions& options) {
    return run([&](Console& console) { return run_crds(options, console); });
  }
  std::string use_runtimes(const RuntimesOptions& options) {
    return run([&](Console& console) { return run_runtimes(options, console); });
  }
  std::vector<std::string> deleted() const {
    std::vector<std::string> paths;
    for (const kube::ReceivedRequest& request : api.log())
      if (request.method == "DELETE") paths.push_back(request.path + " " + request.body);
    return paths;
  }
};

}  // namespace

TEST_CASE_METHOD(InstallFixture,
                 "CRDs are applied, kept by Helm, and waited for until they are served") {
  CrdsOptions options;
  options.cluster = cluster;
  options.is_applied = true;
  options.except = {"jobsets.jobset.x-k8s.io"};
  options.keep = {"optimizationjobs.trainer.kubeflow.org", "absent.trainer.kubeflow.org"};
  api.on("PATCH", kCrds + options.keep[0]).answer(200, kServed);
  api.on("PATCH", kCrds + options.keep[1])
      .answer(404, R"({"kind":"Status","reason":"NotFound","message":"no"})");
  for (const char* kind : {"trainingruntimes", "clustertrainingruntimes"})
    api.on("PATCH", kCrds + kind + ".trainer.kubeflow.org").answer(200, kServed);
  const std::string jobs = kCrds + "trainjobs.trainer.kubeflow.org";
  api.on("PATCH", jobs).answer(200, R"({"metadata":{"name":"x"}})");
  api.on("GET", jobs).answer(200, kServed);
  const std::string said = apply_crds(options);
  CAPTURE(said);
  CHECK(code == kExitDone);
  CHECK_THAT(said, Catch::Contains("customresourcedefinition.apiextensions.k8s.io/"
                                   "trainjobs.trainer.kubeflow.org applied\n"));
  std::size_t applied = 0;
  std::size_t kept = 0;
  for (const kube::ReceivedRequest& request : api.log()) {
    CHECK(request.path.find("jobsets") == std::string::npos);
    if (request.method != "PATCH") continue;
    if (std::ranges::find(options.keep, request.path.substr(kCrds.size())) != options.keep.end()) {
      CHECK(request.body == R"({"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}})");
      ++kept;
      continue;
    }
    ++applied;
    CHECK_THAT(request.query,
               Catch::Contains("fieldManager=trainer-install") && Catch::Contains("force=true"));
    CHECK_THAT(request.body, Catch::Contains(R"("helm.sh/resource-policy":"keep")"));
  }
  CHECK(applied == 3);
  CHECK(kept == 2);
}

TEST_CASE_METHOD(InstallFixture, "a CRD that is refused ends the command, and is named") {
  CrdsOptions options;
  options.cluster = cluster;
  options.is_applied = true;
  api.on("PATCH", kCrds + "trainjobs.trainer.kubeflow.org")
      .answer(403, R"({"kind":"Status","reason":"Forbidden","message":"no right"})");
  CHECK_THAT(apply_crds(options),
             Catch::Contains("CustomResourceDefinition trainjobs.trainer.kubeflow.org: no right"));
  CHECK(code == kExitRefused);
}

TEST_CASE_METHOD(InstallFixture,
                 "runtimes are applied with labels and images, when their kind is served") {
  RuntimesOptions options;
  options.cluster = cluster;
  options.is_applied = true;
  options.names = {"torch-distributed", "deepspeed-distributed"};
  options.labels = {"trainer.kubeflow.org/webhook-validation=disabled"};
  options.images = {"ghcr.io/kubeflow/trainer/deepspeed-runtime=r.example.com:5000/d:v1"};
  const std::string path = kRuntimes + "/torch-distributed";
  api.on("PATCH", path).answer(404, R"({"kind":"Status","reason":"NotFound","message":"no"})");
  api.on("PATCH", path).answer(200, runtime("torch-distributed"));
  api.on("PATCH", kRuntimes + "/deepspeed-distributed").answer(200, runtime("d"));
  const std::string said = use_runtimes(options);
  CAPTURE(said);
  CHECK(code == kExitDone);
  REQUIRE(api.log().size() == 3);
  const std::string& torch = api.log()[1].body;
  CHECK_THAT(torch,
             Catch::Contains(R"("trainer.kubeflow.org/webhook-validation":"disabled")") &&
                 Catch::Contains(R"("trainer.kubeflow.org/managed-by":"runtimes-installer")") &&
                 Catch::Contains(R"("image":"pytorch/pytorch)"));
  const std::string& deepspeed = api.log()[2].body;
  CHECK_THAT(deepspeed, Catch::Contains(R"("image":"r.example.com:5000/d:v1")"));
  CHECK_THAT(deepspeed, !Catch::Contains("deepspeed-runtime"));
}

TEST_CASE_METHOD(InstallFixture, "runtimes that unfinished jobs use are not removed") {
  RuntimesOptions options;
  options.cluster = cluster;
  options.removes_unused = true;
  api.on("GET", kRuntimes)
      .answer(200, list(runtime("free") + "," + runtime("used") + "," + runtime("finished") + "," +
                        runtime("of-a-namespace")));
  api.on("GET", kTrainJobsPath)
      .answer(200, list(job(R"({"name":"used"})") + "," +
                        job(R"({"name":"finished"})", R"({"type":"Failed","status":"True"})") +
                        "," + job(R"({"name":"of-a-namespace","kind":"TrainingRuntime"})")));
  for (const char* name : {"free", "finished", "of-a-namespace"})
    api.on("DELETE", kRuntimes + "/" + name).answer(200, "{}");
  const std::string said = use_runtimes(options);
  CAPTURE(said);
  CHECK(code == kExitDone);
  CHECK_THAT(said, Catch::Contains("/used kept: an unfinished TrainJob uses it\n"));
  const auto removed = deleted();
  REQUIRE(removed.size() == 3);
  CHECK_THAT(removed[0], Catch::StartsWith(kRuntimes + "/free ") && Catch::Contains("u-free"));
  CHECK(api.log()[0].query ==
        "labelSelector=trainer.kubeflow.org%2Fmanaged-by%3Druntimes-installer&limit=500");
}

TEST_CASE_METHOD(InstallFixture, "what is applied is not removed") {
  RuntimesOptions options;
  options.cluster = cluster;
  options.is_applied = true;
  options.removes_unused = true;
  options.names = {"torch-distributed"};
  api.on("PATCH", kRuntimes + "/torch-distributed").answer(200, runtime("torch-distributed"));
  api.on("GET", kRuntimes).answer(200, list(runtime("torch-distributed") + "," + runtime("trl")));
  api.on("GET", kTrainJobsPath).answer(200, list(""));
  api.on("DELETE", kRuntimes + "/trl").answer(200, "{}");
  use_runtimes(options);
  CHECK(code == kExitDone);
  CHECK(deleted().size() == 1);
}

TEST_CASE_METHOD(InstallFixture, "without the CRDs there is nothing to remove") {
  RuntimesOptions options;
  options.cluster = cluster;
  options.removes_unused = true;
  CHECK(use_runtimes(options).empty());
  CHECK(code == kExitDone);
}

TEST_CASE("flags of runtimes that fit nothing are refused before anything is asked") {
  struct Row {
    RuntimesOptions options;
    const char* words;
  };
  Row rows[3];
  rows[0].options.images = {"ghcr.io/kubeflow/trainer/deepspeed=x"};
  rows[0].words = "--image ghcr.io/kubeflow/trainer/deepspeed: no built-in runtime";
  rows[1].options.labels = {"a"};
  rows[1].words = "--label a: write NAME=VALUE";
  rows[2].options.names = {"torch"};
  rows[2].words = "blueprint torch: there is none of this name";
  for (Row& row : rows) {
    row.options.is_applied = true;
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    Console console{in, out, err};
    CHECK(run_runtimes(row.options, console) == kExitRefused);
    CHECK_THAT(err.str(), kube::test::starts_with(row.words));
  }
}

TEST_CASE_METHOD(InstallFixture,
                 "a Lease that is not renewed has no leader, whatever its time says") {
  const std::string lease =
      "/apis/coordination.k8s.io/v1/namespaces/kubeflow-system/leases/trainer.kubeflow.org";
  api.on("GET", lease)
      .answer(200, R"({"spec":{"holderIdentity":"pod-1","leaseDurationSeconds":1,
      "renewTime":"2999-01-01T00:00:00.000000Z"}})")
      .always();
  CheckOptions options;
  options.cluster = cluster;
  options.lease = "trainer.kubeflow.org";
  options.limit = std::chrono::seconds(0);
  const std::string said = run([&](Console& console) { return run_check(options, console); });
  CHECK(code == kExitRefused);
  CHECK_THAT(said,
             Catch::Contains("leader     Lease kubeflow-system/trainer.kubeflow.org: nobody"));
}

TEST_CASE_METHOD(InstallFixture,
                 "an installation works where kinds are served, one leads and a job is refused") {
  const std::string ns = "/namespaces/kubeflow-system/";
  api.on("GET", "/apis/trainer.kubeflow.org/v1alpha1" + ns + "trainjobs")
      .answer(200, list(""))
      .always();
  api.on("GET", "/apis/trainer.kubeflow.org/v1alpha1" + ns + "trainingruntimes")
      .answer(200, list(""));
  api.on("GET", "/apis/jobset.x-k8s.io/v1alpha2" + ns + "jobsets").answer(200, list(""));
  const std::string lease = "/apis/coordination.k8s.io/v1" + ns + "leases/trainer.kubeflow.org";
  api.on("GET", lease).answer(200, R"({"spec":{"holderIdentity":""}})");
  // Renewed, by a clock that is centuries behind.
  for (const char* time : {"1999-01-01T00:00:00.000000Z", "1999-01-01T00:00:02.000000Z"})
    api.on("GET", lease)
        .answer(200, R"({"spec":{"holderIdentity":"pod-1","leaseDurationSeconds":15,
      "renewTime":")" + std::string(time) +
                         "\"}}");
  const std::string jobs = "/apis/trainer.kubeflow.org/v1alpha1" + ns + "trainjobs";
  CheckOptions options;
  options.cluster = cluster;
  options.lease = "trainer.kubeflow.org";

  SECTION("admission refuses it") {
    api.on("POST", jobs)
        .answer(
            403,
            R"({"kind":"Status","reason":"Forbidden","message":"admission webhook \"validator.trainjob)"
            R"(.trainer.kubeflow.org\" denied the request: no-runtime-has-this-name not found"})");
    const std::string said = run([&](Console& console) { return run_check(options, console); });
    CAPTURE(said);
    CHECK(code == kExitDone);
    CHECK_THAT(said, Catch::Contains("leader     pod-1 leads\n") &&
                         Catch::Contains("admission  admission answers\n"));
    CHECK(api.log().back().query == "dryRun=All");
  }
  SECTION("no request goes to a webhook") {
    api.on("POST", jobs).answer(201, "{}").always();
    options.limit = std::chrono::seconds(3);  // longer than the leader takes above
    const std::string said = run([&](Console& console) { return run_check(options, console); });
    CHECK(code == kExitRefused);
    CHECK_THAT(said, Catch::Contains("no webhook is called for TrainJobs"));
  }
  SECTION("there are no webhooks to look for") {
    options.has_webhooks = false;
    const std::string said = run([&](Console& console) { return run_check(options, console); });
    CHECK(code == kExitDone);
    CHECK_THAT(said, Catch::Contains("admission  not looked for\n"));
  }
}
