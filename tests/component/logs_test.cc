// `trainer logs` against a scripted API server: broken streams, restarts, deleted pods.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "controller/cli/log_follow.hh"
#include "controller/cli/log_print.hh"
#include "controller/kinds/registry.hh"
#include "kube/client/task_group.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"
#include "tests/component/command_run.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kLoggedJobsPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs";
const std::string kPodList = "/api/v1/namespaces/ns/pods";

std::string job(const std::string& phase, bool is_finished) {
  return R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{"name":"j","namespace":"ns","uid":"j1",
      "resourceVersion":"9"},"spec":{"runtimeRef":{"name":"r"}},"status":{"phase":")" +
         phase + R"(")" +
         (is_finished ? R"(,"conditions":[{"type":")" + phase +
                            R"(","status":"True","reason":"r","message":"m"}])"
                      : "") +
         "}}";
}

std::string pod(int index, const std::string& phase, const std::string& states, int restarts = 0) {
  const std::string n = std::to_string(index);
  return R"({"metadata":{"name":"j-node-0-)" + n + R"(","namespace":"ns","uid":"p)" + n +
         R"(","resourceVersion":"9","labels":{"jobset.sigs.k8s.io/jobset-name":"j",
      "jobset.sigs.k8s.io/replicatedjob-name":"node","batch.kubernetes.io/job-completion-index":")" +
         n + R"("}},"status":{"phase":")" + phase +
         R"(","containerStatuses":[{"name":"node","restartCount":)" + std::to_string(restarts) +
         R"(,"state":)" + states + "}]}}";
}

const std::string kEnded = R"({"terminated":{"exitCode":0,"reason":"Completed"}})";
const std::string kFailed = R"({"terminated":{"exitCode":3,"reason":"Error"}})";
const std::string kRunning = R"({"running":{}})";

std::string list_of_pods(const std::string& items) {
  return R"({"metadata":{"resourceVersion":"9"},"items":[)" + items + "]}";
}
// One line, as every event of a watch.
std::string event(const std::string& type, const std::string& object) {
  const auto parsed = kube::parse_json(R"({"type":")" + type + R"(","object":)" + object + "}");
  REQUIRE(parsed);
  return kube::print_json(*parsed) + "\n";
}
std::string line(int second, const std::string& text) {
  return "2026-08-20T10:00:0" + std::to_string(second) + ".000000000Z " + text + "\n";
}

LogsHook hook() {
  return *production_registry(KindOptions()).front().logs;
}

struct LogsFixture {
  kube::asio::io_context io;
  kube::ScriptedServer api{io};
  kube::FakeClock clock;
  kube::FakeRandom random;
  std::unique_ptr<kube::Transport> transport =
      kube::make_transport(io, api.config(), kube::TransportLimits());
  kube::ApiClient client{*transport, clock, random};
  std::vector<std::string> lines;
  std::vector<std::string> reported;

  LogFollower::Options options() {
    LogFollower::Options made;
    made.resource = kTrainJobs;
    made.hook = hook();
    made.job = {"ns", "j"};
    made.print = [this](const LogPod& from, std::string_view container, const LogLine& text) {
      lines.push_back(from.prefix(container) + " " + text.text);
    };
    made.report = [this](std::string_view what) { reported.emplace_back(what); };
    return made;
  }
  kube::Result<std::optional<ObjectState>> follow(LogFollower::Options made) {
    LogFollower follower(io, client, std::move(made));
    return run_in_time(follower.run());
  }
  template <class T>
  T run_in_time(kube::Task<T> task) {
    kube::TaskGroup time(io.get_executor(), nullptr);
    time.spawn("time", let_time_pass());
    auto done = kube::run_task(io, std::move(task));
    time.cancel();
    kube::run_task(io, time.join());
    return done;
  }
  // Every wait for the fake clock ends after some real milliseconds.
  kube::Task<void> let_time_pass() {
    kube::asio::steady_timer timer(io);
    for (;;) {
      timer.expires_after(std::chrono::milliseconds(2));
      co_await timer.async_wait(kube::asio::use_awaitable);
      if (clock.timers() == 0) continue;
      clock.advance(std::chrono::ceil<std::chrono::microseconds>(clock.until_next()));
    }
  }
  void serve_job(const std::string& phase, const std::string& message = "") {
    std::string object = job(phase, true);
    object.insert(object.find("\"phase\""), "\"message\":\"" + message + "\",");
    api.on("GET", kLoggedJobsPath + "/j").answer(200, object).always();
    api.on("GET", kLoggedJobsPath).answer(200, list_of_pods(object));
    api.on("GET", kLoggedJobsPath).stream({}).stay_open();
  }
  // `at_the_end`: the items of the last list, after all known pods are over.
  void serve_pods(const std::string& items, std::vector<std::string> events,
                  const std::string& at_the_end) {
    api.on("GET", kPodList).answer(200, list_of_pods(items));
    api.on("GET", kPodList).stream(std::move(events)).stay_open();
    api.on("GET", kPodList).answer(200, list_of_pods(at_the_end));
    api.on("GET", kPodList).stream({}).stay_open();
  }
  void serve_pods(const std::string& items) { serve_pods(items, {}, items); }
  kube::ScriptedServer::Script& log_of(int index) {
    return api.on("GET", kPodList + "/j-node-0-" + std::to_string(index) + "/log");
  }
};

using Lines = std::vector<std::string>;

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trainer-logs-" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE_METHOD(LogsFixture,
                 "a stream that breaks is opened again, and every line is printed once") {
  serve_job("Complete");
  serve_pods(pod(0, "Succeeded", kEnded));
  log_of(0).stream({line(1, "a"), line(2, "b"), line(2, "b")}).cut_in_last_chunk();
  log_of(0).stream({line(1, "a"), line(2, "b"), line(2, "b"), line(3, "c")});
  const auto last = follow(options());
  REQUIRE(last);
  CHECK((*last)->is_finished);
  CHECK(lines == Lines{"[node-0] a", "[node-0] b", "[node-0] b", "[node-0] c"});
}

TEST_CASE_METHOD(LogsFixture,
                 "a running container is followed until it has ended, then read again") {
  serve_job("Failed");
  const std::string ended = pod(1, "Failed", kFailed);
  serve_pods(pod(1, "Running", kRunning), {event("MODIFIED", ended)}, ended);
  log_of(1).stream({line(1, "a")});
  log_of(1).stream({line(1, "a"), line(2, "the last words")}).always();
  REQUIRE(follow(options()));
  CHECK(lines == Lines{"[node-1] a", "[node-1] the last words"});
  CHECK(std::find(reported.begin(), reported.end(), "[node-1] ended with exit code 3 (Error)") !=
        reported.end());
}

TEST_CASE_METHOD(LogsFixture, "why a job has failed is left to a caller that says it") {
  const bool is_omitted = GENERATE(false, true);
  serve_job("Failed", "boom");
  serve_pods(pod(0, "Failed", kFailed));
  log_of(0).stream({line(1, "a")}).always();
  auto made = options();
  made.omits_failure = is_omitted;
  REQUIRE(follow(std::move(made)));
  const std::string said = is_omitted ? "TrainJob ns/j: Failed" : "TrainJob ns/j: Failed: boom";
  CHECK(std::count(reported.begin(), reported.end(), said) == 1);
}

TEST_CASE_METHOD(LogsFixture, "a pod that no container started of says why, each reason once") {
  const auto refused = [](int index, const std::string& message) {
    const std::string n = std::to_string(index);
    return R"({"metadata":{"name":"j-node-0-)" + n + R"(","namespace":"ns","uid":"p)" + n +
           R"(","resourceVersion":"9","labels":{"jobset.sigs.k8s.io/jobset-name":"j",
        "jobset.sigs.k8s.io/replicatedjob-name":"node","batch.kubernetes.io/job-completion-index":")" +
           n + R"("}},"status":{"phase":"Failed","reason":"NotSupported","message":")" + message +
           R"("}})";
  };
  serve_job("Failed");
  serve_pods(refused(0, "no GPUs here") + "," + refused(1, "no GPUs here") + "," +
             refused(2, "no probes"));
  REQUIRE(follow(options()));
  const auto said = [this](const std::string& text) {
    return std::count(reported.begin(), reported.end(), text);
  };
  CHECK(said("pod j-node-0-0 failed: NotSupported: no GPUs here") == 1);
  CHECK(said("pod j-node-0-1 failed: NotSupported: no GPUs here") == 0);
  CHECK(said("pod j-node-0-2 failed: NotSupported: no probes") == 1);
}

TEST_CASE_METHOD(LogsFixture, "a container that was restarted is read from both of its runs") {
  serve_job("Complete");
  const std::string again = pod(0, "Succeeded", kEnded, 1);
  serve_pods(pod(0, "Running", kFailed, 0), {event("MODIFIED", again)}, again);
  log_of(0)
      .reply([](const kube::ReceivedRequest& request) {
        // The first run, for either query; the second run exists once the first has been read.
        return kube::ScriptedReply(200,
                                   request.query.find("sinceTime") == std::string::npos ||
                                           request.query.find("previous=true") != std::string::npos
                                       ? line(1, "first")
                                       : line(5, "second"));
      })
      .always();
  REQUIRE(follow(options()));
  CHECK(lines == Lines{"[node-0] first", "[node-0] second"});
}

TEST_CASE_METHOD(LogsFixture,
                 "pods that their watch has not brought when the job ends are read too") {
  serve_job("Complete");
  const std::string known = pod(0, "Succeeded", kEnded);
  serve_pods(known, {}, known + "," + pod(1, "Succeeded", kEnded));
  log_of(0).stream({line(1, "zero")});
  log_of(1).stream({line(2, "one")});
  REQUIRE(follow(options()));
  CHECK(lines == Lines{"[node-0] zero", "[node-1] one"});
}

TEST_CASE_METHOD(LogsFixture,
                 "a log that is still empty when its container has ended is read again") {
  serve_job("Complete");
  serve_pods(pod(0, "Succeeded", kEnded) + "," + pod(1, "Succeeded", kEnded));
  log_of(0).stream({});
  log_of(0).stream({line(1, "late")});
  log_of(1).stream({}).times(2);  // stays empty
  REQUIRE(follow(options()));
  CHECK(lines == Lines{"[node-0] late"});
}

TEST_CASE_METHOD(LogsFixture, "a watch that is refused is reported, and tried again") {
  serve_job("Complete");
  const std::string ended = pod(0, "Succeeded", kEnded);
  api.on("GET", kPodList).answer(403, R"({"message":"pods is forbidden"})");
  serve_pods(ended);
  log_of(0).stream({line(1, "a")});
  REQUIRE(follow(options()));
  CHECK(lines == Lines{"[node-0] a"});
  CHECK(std::any_of(reported.begin(), reported.end(), [](const std::string& what) {
    return what.find("pods is forbidden") != std::string::npos;
  }));
}

TEST_CASE_METHOD(LogsFixture, "only the chosen node's log is read") {
  serve_job("Complete");
  serve_pods(pod(0, "Succeeded", kEnded) + "," + pod(1, "Succeeded", kEnded));
  log_of(1).stream({line(1, "one")}).always();
  auto chosen = options();
  chosen.node = 1;
  chosen.first.tail = 5;
  REQUIRE(follow(std::move(chosen)));
  CHECK(lines == Lines{"[node-1] one"});
  bool has_tail = false;
  for (const auto& request : api.log())
    has_tail |= request.query.find("tailLines=5") != std::string::npos;
  CHECK(has_tail);
}

TEST_CASE_METHOD(LogsFixture, "a log that cannot be read any more does not delay the end") {
  serve_job("Complete");
  serve_pods(pod(0, "Succeeded", kEnded));
  log_of(0).answer(404, "{}").always();
  const auto began = clock.steady();
  REQUIRE(follow(options()));
  // Five tries, a second apart.
  const auto lines_asked = api.lines();
  CHECK(std::count_if(lines_asked.begin(), lines_asked.end(), [](const std::string& asked) {
          return asked.find("/j-node-0-0/log") != std::string::npos;
        }) == 5);
  CHECK(clock.steady() - began >= std::chrono::seconds(4));
  CHECK(lines.empty());
  CHECK(std::find(reported.begin(), reported.end(), "[node-0]: its log cannot be read any more") !=
        reported.end());
}

// Its deletion was asked for.
std::string ending(std::string pod) {
  return pod.insert(pod.find("\"labels\""), R"("deletionTimestamp":"2026-08-20T10:00:00Z",)"
                                            R"("deletionGracePeriodSeconds":10,)");
}

TEST_CASE_METHOD(LogsFixture,
                 "a pod of a lost node, which stays in deletion, does not delay the end") {
  serve_job("Failed");
  const auto began = clock.steady();
  SECTION("its log cannot be read") {
    serve_pods(ending(pod(0, "Running", kRunning)));
    log_of(0).answer(502, "{}").always();
    REQUIRE(follow(options()));
    CHECK(std::find(reported.begin(), reported.end(),
                    "[node-0]: its log cannot be read any more") != reported.end());
    // Until its grace period is over, it is requested each second: only the stream may be cut.
    const auto asked = api.lines();
    CHECK(std::count_if(asked.begin(), asked.end(), [](const std::string& line) {
            return line.find("/j-node-0-0/log") != std::string::npos;
          }) > 35);
  }
  SECTION("it never had one") {
    serve_pods(ending(pod(0, "Pending", R"({"waiting":{}})")));
    REQUIRE(follow(options()));
  }
  CHECK(clock.steady() - began >= std::chrono::seconds(40));
}

TEST_CASE_METHOD(LogsFixture, "a job that does not exist, and one that is deleted meanwhile") {
  const auto missing = follow(options());
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == kube::ErrorCode::kNotFound);

  api.on("GET", kLoggedJobsPath + "/j").answer(200, job("Running", false));
  api.on("GET", kLoggedJobsPath).answer(200, list_of_pods(job("Running", false)));
  api.on("GET", kLoggedJobsPath).stream({event("DELETED", job("Running", false))}).stay_open();
  serve_pods("");
  const auto deleted = follow(options());
  REQUIRE(deleted);
  CHECK_FALSE(*deleted);
}

TEST_CASE_METHOD(LogsFixture, "without following, all logs are merged by time") {
  log_of(0).stream({line(1, "a"), line(3, "c"), "no time\n"});
  log_of(1).stream({line(2, "b"), line(4, "d")});
  log_of(2).answer(500, "{}").always();
  std::vector<LogPod> pods;
  for (const int index : {2, 1, 0}) {
    pods.push_back(*LogPod::read(*kube::parse_json(pod(index, "Succeeded", kEnded)), hook()));
  }
  std::vector<std::string> errors;
  REQUIRE(
      kube::run_task(io, merge_logs(client, std::move(pods), LogQuery(), options().print,
                                    [&](std::string_view what) { errors.emplace_back(what); })));
  CHECK(lines == Lines{"[node-0] a", "[node-1] b", "[node-0] c", "[node-0] no time", "[node-1] d"});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with("j-node-0-2: no log: "));
}

TEST_CASE_METHOD(LogsFixture,
                 "without following, too, an empty log is read again where it has ended") {
  log_of(0).stream({});
  log_of(0).stream({line(1, "late")});
  log_of(1).stream({});  // still runs, so it is not read again
  log_of(2).stream({}).times(2);
  std::vector<LogPod> pods;
  for (const int index : {0, 1, 2}) {
    const bool is_running = index == 1;
    pods.push_back(*LogPod::read(*kube::parse_json(pod(index, is_running ? "Running" : "Succeeded",
                                                       is_running ? kRunning : kEnded)),
                                 hook()));
  }
  std::vector<std::string> errors;
  REQUIRE(run_in_time(merge_logs(client, std::move(pods), LogQuery(), options().print,
                                 [&](std::string_view what) { errors.emplace_back(what); })));
  CHECK(lines == Lines{"[node-0] late"});
  CHECK(errors.empty());
}

TEST_CASE_METHOD(LogsFixture, "a log that breaks off is an error, after all that there is") {
  const bool is_cut = GENERATE(false, true);
  serve_job("Complete");
  api.on("GET", kPodList).answer(200, list_of_pods(pod(0, "Succeeded", kEnded)));
  auto& log = log_of(0).stream({line(1, "a"), line(2, "b")});
  if (is_cut) log.cut_in_last_chunk();
  const Folder folder;
  LogsOptions asked;
  asked.cluster.kubeconfig = folder.path / "config";
  asked.cluster.ns = "ns";
  asked.target = {"j"};
  std::ofstream(asked.cluster.kubeconfig)
      << "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: '"
      << api.config().server << "'}}]\nusers: [{name: u, user: {}}]\n";
  const test::CommandRun done = test::run_beside(io, [&asked](Console& console) {
    return run_logs(asked, production_registry(KindOptions()), console);
  });
  CHECK_THAT(done.said, Catch::StartsWith("[node-0] a\n"));
  CHECK((done.said.find("the log broke off") != std::string::npos) == is_cut);
  CHECK(done.code == (is_cut ? kExitRefused : kExitDone));
}

TEST_CASE("a terminal gets no control characters of a log, a pipe gets its bytes") {
  const auto object = kube::parse_json(pod(0, "Running", kRunning));
  REQUIRE(object);
  const auto place = LogPod::read(*object, hook());
  REQUIRE(place);
  const std::string text = "\x1b[31m10%\r\x1b]0;owned\x07\xff";
  for (const bool is_terminal : {true, false}) {
    INFO(is_terminal);
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    Console console{in, out, err};
    console.is_terminal = is_terminal;
    LogLine one;
    one.text = text;
    log_printer(LogsOptions(), console)(*place, "node", one);
    const std::string printed = is_terminal ? "\x1b[31m10%\r\\x1b]0;owned\\x07\xff" : text;
    CHECK(out.str() == "[node-0] " + printed + "\n");
  }
}
