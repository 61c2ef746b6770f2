// `trainer why` against a scripted API server: what it asks for, and that a user without rights
// gets the rest of the report.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "controller/cli/commands.hh"
#include "controller/kinds/registry.hh"
#include "kube/model/digest.hh"
#include "kube/model/gzip.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/scripted_server.hh"
#include "tests/component/command_run.hh"
#include "tests/support/catch.hh"

using namespace trainer;
namespace fs = std::filesystem;

namespace {

const std::string kCore = "/api/v1/namespaces/ns/";
const std::string kShownJob = R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
    "metadata":{"name":"j","namespace":"ns","uid":"u","creationTimestamp":"2026-08-20T10:00:00Z"},
    "spec":{"runtimeRef":{"name":"r"}},
    "status":{"phase":"Running","reason":"NodesReady","message":"1 of 1 nodes are ready"}})";
const std::string kShownPod = R"({"metadata":{"name":"j-node-0-0-x","namespace":"ns","uid":"p",
    "labels":{"jobset.sigs.k8s.io/replicatedjob-name":"node"}},
    "spec":{"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]},
    "status":{"phase":"Running","containerStatuses":[{"name":"node","state":{"running":{}}}]}})";

std::string list_answer(const std::string& items) {
  return R"({"metadata":{"resourceVersion":"9"},"items":[)" + items + "]}";
}

std::string warning(const std::string& name, const std::string& message) {
  return R"({"type":"Warning","reason":"R","message":")" + message +
         R"(","involvedObject":{"kind":"X","name":")" + name + R"("}})";
}

struct WhyFixture {
  kube::asio::io_context io;
  kube::ScriptedServer api{io};
  fs::path folder = fs::temp_directory_path() / ("trainer-why-" + std::to_string(::getpid()));

  WhyFixture() {
    fs::create_directories(folder);
    serve("Running", kShownPod);
  }
  WhyFixture(const WhyFixture&) = delete;
  WhyFixture& operator=(const WhyFixture&) = delete;
  ~WhyFixture() { fs::remove_all(folder); }

  // The following objects are served from now on.
  void serve(const std::string& phase, const std::string& pods) {
    job = kShownJob;
    job.replace(job.find("Running"), 7, phase);
    all_pods = list_answer(pods);
  }
  auto logs_asked() const {
    const auto lines = api.lines();
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("/log?") != std::string::npos;
    });
  }

  std::string ask(const std::string& user) {
    api.on("GET", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/j").answer(200, job);
    api.on("GET", kCore + "pods").answer(200, all_pods);
    const fs::path config = folder / "config";
    std::ofstream(config)
        << "current-context: c\n"
           "contexts: [{name: c, context: {cluster: c, user: u, namespace: ns}}]\n"
           "clusters: [{name: c, cluster: {server: '"
        << api.config().server << "'}}]\nusers: [{name: u, user: {" << user << "}}]\n";
    WhyOptions options;
    options.cluster.kubeconfig = config.string();
    options.target = {"j"};
    options.has_stacks = has_stacks;
    options.format = format;
    test::CommandRun done = test::run_beside(io, [&options](Console& console) {
      return run_why(options, production_registry(KindOptions()), console);
    });
    code = done.code;
    return std::move(done.said);
  }
  int code = -1;
  bool has_stacks = false;
  OutputFormat format = OutputFormat::kText;
  std::string job;
  std::string all_pods;
};

}  // namespace

TEST_CASE_METHOD(WhyFixture, "the report has last lines, and warnings of Jobs, pods and claims") {
  api.on("GET", "/apis/batch/v1/namespaces/ns/jobs")
      .answer(200, list_answer(R"({"metadata":{"name":"j-node-0"}})"));
  api.on("GET", kCore + "events")
      .answer(200, list_answer(warning("j-node-0", "of the Job") + "," +
                               warning("data", "of the claim") + "," +
                               warning("j-node-0-0-x", "of the pod") + "," +
                               warning("j-node-1", "of another")));
  api.on("GET", kCore + "pods/j-node-0-0-x/log")
      .answer(200, "2026-08-20T10:00:00.000000000Z OSError: [Errno 37] No locks available\n");
  const std::string text = ask("");
  CAPTURE(text);
  CHECK(code == kExitDone);
  CHECK(text.starts_with("TrainJob ns/j: Running (NodesReady): a file lock fails on a network"));
  for (const char* part : {"of the Job", "of the claim", "of the pod", "No locks available"})
    CHECK_THAT(text, kube::test::contains(part));
  CHECK(text.find("of another") == std::string::npos);
}

TEST_CASE_METHOD(WhyFixture, "saved stacks are printed, and nothing else is asked for") {
  has_stacks = true;
  kube::GzipWriter writer(10'000);
  REQUIRE(writer.add(R"({"ranks":[{"rank":5,"pod":"p","node":"m","waiting":false,"threads":[
      {"name":"MainThread","main":true,"state":"S","frames":["/app/data.py:41 \u001b[2Jread"]}]}])"));
  const std::string bytes = writer.finish("}");
  const auto serve_stacks = [this](const std::string& owner, const std::string& data) {
    api.on("GET", kCore + "configmaps/j-stacks")
        .answer(200, R"({"metadata":{"name":"j-stacks","namespace":"ns","ownerReferences":[
            {"kind":"TrainJob","name":"j","controller":true,"uid":")" +
                         owner + R"("}]},"binaryData":{"stacks.json.gz":")" + data + R"("}})");
  };
  SECTION("as text") {
    serve_stacks("u", kube::base64_encode(bytes));
    CHECK(ask("") ==
          "rank 5 (pod p, node m)\n  MainThread (S)\n    /app/data.py:41 \\x1b[2Jread\n");
    CHECK(code == kExitDone);
    CHECK(api.lines().size() == 2);
  }
  SECTION("as JSON") {
    format = OutputFormat::kJson;
    serve_stacks("u", kube::base64_encode(bytes));
    const auto stacks = kube::parse_json(ask(""));
    REQUIRE(stacks);
    CHECK(stacks->get_array("ranks")[0].get_int("rank") == 5);
  }
  SECTION("those of an earlier job of this name are not") {
    serve_stacks("other", kube::base64_encode(bytes));
    CHECK_THAT(ask(""), kube::test::contains("No stacks are saved of TrainJob ns/j"));
    CHECK(code == kExitRefused);
  }
  SECTION("there are none") {
    api.on("GET", kCore + "configmaps/j-stacks")
        .answer(404, R"({"kind":"Status","reason":"NotFound","message":"not found","code":404})");
    CHECK_THAT(ask(""), kube::test::contains("detect-hangs"));
    CHECK(code == kExitRefused);
  }
  SECTION("of another form") {
    serve_stacks("u", "AAAA");
    CHECK_THAT(ask(""), kube::test::contains("ConfigMap ns/j-stacks: stacks.json.gz: "));
    CHECK(code == kExitRefused);
  }
}

TEST_CASE_METHOD(WhyFixture, "warnings about an earlier job of the same name are left out") {
  const auto at = [](const std::string& time, const std::string& message) {
    return warning("j", message + R"(","lastTimestamp":")" + time);
  };
  api.on("GET", kCore + "events")
      .answer(200, list_answer(at("2026-08-20T09:59:59Z", "of the job before") + "," +
                               at("2026-08-20T10:00:00Z", "of this job")));
  const std::string text = ask("");
  CAPTURE(text);
  CHECK(text.find("of this job") != std::string::npos);
  CHECK(text.find("of the job before") == std::string::npos);
}

TEST_CASE_METHOD(WhyFixture, "of very many warnings a part is read, and the report says so") {
  const std::string page = R"({"metadata":{"resourceVersion":"9","continue":"more"},"items":[)";
  api.on("GET", kCore + "events").answer(200, page + warning("j", "of the job") + "]}").always();
  const std::string text = ask("");
  CHECK(text.find("of the job") != std::string::npos);
  CHECK(text.find("more warnings than were read") != std::string::npos);
  const auto lines = api.lines();
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.starts_with("GET /api/v1/namespaces/ns/events");
        }) == 20);
}

TEST_CASE_METHOD(WhyFixture, "of many logs those are read that show the cause") {
  std::string pods;
  for (int rank = 0; rank < 12; ++rank) {
    const std::string n = std::to_string(rank);
    const std::string second = rank == 11 ? "01" : "30";
    pods += (rank == 0 ? "" : ",") +
            (R"({"metadata":{"name":"j-node-0-)" + n + R"(","namespace":"ns","uid":"p)" + n +
             R"(","labels":{"jobset.sigs.k8s.io/replicatedjob-name":"node"}},"status":{)" +
             R"("phase":"Failed","containerStatuses":[{"name":"node","state":{"terminated":)" +
             R"({"exitCode":1,"finishedAt":"2026-08-20T10:00:)" + second + R"(Z"}}}]}})");
  }
  serve("Failed", pods);
  const std::string at = "2026-08-20T10:00:00.000000000Z ";
  for (int rank = 0; rank < 12; ++rank)
    api.on("GET", kCore + "pods/j-node-0-" + std::to_string(rank) + "/log")
        .answer(200, at + (rank == 11 ? "OSError: [Errno 37] No locks available\n" : "stopped\n"));
  const std::string text = ask("");
  CHECK(text.find("No locks available") != std::string::npos);
  CHECK(logs_asked() == 8);
}

TEST_CASE_METHOD(WhyFixture, "logs that a user may not read are asked for once") {
  std::string second = kShownPod;
  second.replace(second.find("j-node-0-0-x"), 12, "j-node-0-1-x");
  serve("Running", kShownPod + "," + second);
  for (const char* name : {"j-node-0-0-x", "j-node-0-1-x"})
    api.on("GET", kCore + "pods/" + name + "/log")
        .answer(403, R"({"kind":"Status","code":403,"reason":"Forbidden"})");
  ask("");
  CHECK(logs_asked() == 1);
}

TEST_CASE_METHOD(WhyFixture, "what a user may not read is left out") {
  for (const std::string& path : {std::string("/apis/batch/v1/namespaces/ns/jobs"),
                                  kCore + "events", kCore + "pods/j-node-0-0-x/log"})
    api.on("GET", path).answer(403, R"({"kind":"Status","code":403,"reason":"Forbidden"})");
  CHECK(ask("") == "TrainJob ns/j: Running (NodesReady)\n  1 of 1 nodes are ready\n");
  CHECK(code == kExitDone);
}

TEST_CASE_METHOD(WhyFixture,
                 "a log that stops coming, or is very long, does not hold the report up") {
  const std::string line = "2026-08-20T10:00:00.000000000Z ";
  const std::string log = kCore + "pods/j-node-0-0-x/log";
  SECTION("it stops") {
    api.on("GET", log).stream({line + "OSError: [Errno 37] No locks available\n"}).stay_open();
  }
  SECTION("it is long") {
    std::vector<std::string> pieces(3, line + std::string(1'000'000, 'x') + "\n");
    pieces.push_back(line + "OSError: [Errno 37] No locks available\n");
    api.on("GET", log).stream(std::move(pieces));
  }
  CHECK(ask("").find("No locks available") != std::string::npos);
}

TEST_CASE_METHOD(WhyFixture, "an exec plugin that fails ends the command with its own words") {
  const std::string text =
      ask("exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-login, "
          "interactiveMode: Never, installHint: see example.com}");
  CHECK(text ==
        "exec plugin \"no-such-login\": cannot be started: No such file or directory\nsee "
        "example.com\n");
  CHECK(code == kExitNoCluster);
}
