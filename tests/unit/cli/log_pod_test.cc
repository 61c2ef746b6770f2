#include "controller/cli/log_pod.hh"

#include "controller/kinds/jobset/command_hooks.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const LogsHook kHook{"", nullptr, read_jobset_place};

LogPod pod(const std::string& status, const std::string& extra_labels = "") {
  const auto object =
      kube::parse_json(R"({"metadata":{"name":"j-node-0-3-x","namespace":"ns","uid":"u","labels":{
      "jobset.sigs.k8s.io/replicatedjob-name":"node","batch.kubernetes.io/job-completion-index":"3")" +
                       extra_labels + R"(}},"status":)" + status + "}");
  REQUIRE(object);
  const auto read = LogPod::read(*object, kHook);
  REQUIRE(read);
  return *read;
}

std::string container(const std::string& name, const std::string& states, int restarts = 0) {
  return R"({"name":")" + name + R"(","restartCount":)" + std::to_string(restarts) + "," + states +
         "}";
}

std::string one(const std::string& states, int restarts = 0) {
  return R"({"phase":"Running","containerStatuses":[)" + container("node", states, restarts) + "]}";
}

}  // namespace

TEST_CASE("whether a container has a log depends on its state") {
  struct Case {
    const char* what;
    std::string states;
    bool has_log;
    bool is_ended;
  };
  const Case cases[] = {
      {"not started", R"("state":{"waiting":{"reason":"ContainerCreating"}})", false, false},
      {"running", R"("state":{"running":{}})", true, false},
      {"ended", R"("state":{"terminated":{"exitCode":3,"reason":"Error"}})", true, true},
      {"waits to be started again",
       R"("state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":3}})",
       true, true},
      {"started again", R"("state":{"running":{}},"lastState":{"terminated":{"exitCode":3}})", true,
       false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const LogPod read = pod(one(c.states, 2));
    const LogContainer* found = read.find("node");
    REQUIRE(found != nullptr);
    CHECK(found->has_log == c.has_log);
    CHECK(found->is_ended == c.is_ended);
    CHECK(found->restarts == 2);
    CHECK(found->exit_code.has_value() == c.is_ended);
  }
  CHECK_FALSE(pod(one(R"("state":{"running":{}})")).is_over);
  CHECK(pod(R"({"phase":"Failed"})").is_over);
  CHECK(pod("{}").containers.empty());
}

TEST_CASE("the prefix is as short as the pod allows") {
  const std::string running = R"("state":{"running":{}})";
  CHECK(pod(one(running)).prefix("node") == "[node-3]");
  CHECK(pod(one(running), R"(,"jobset.sigs.k8s.io/restart-attempt":"2")").prefix("node") ==
        "[node-3 #2]");
  // Evictions count, too, where they are counted.
  CHECK(pod(one(running), R"(,"jobset.sigs.k8s.io/restart-attempt":"2"},"annotations":{
            "jobset.sigs.k8s.io/execution-attempt":"5")")
            .prefix("node") == "[node-3 #5]");
  CHECK(
      pod(one(running),
          R"(,"jobset.sigs.k8s.io/replicatedjob-replicas":"4","jobset.sigs.k8s.io/job-index":"1")")
          .prefix("node") == "[node-1-3]");
  const std::string two = R"({"containerStatuses":[)" + container("node", running) + "," +
                          container("sidecar", running) + "]}";
  CHECK(pod(two).prefix("sidecar") == "[node-3 sidecar]");
}

TEST_CASE("init containers are included only where they failed") {
  const std::string init = R"({"initContainerStatuses":[)" +
                           container("ok", R"("state":{"terminated":{"exitCode":0}})") + "," +
                           container("bad", R"("state":{"terminated":{"exitCode":1}})") + "]}";
  const LogPod read = pod(init);
  CHECK(read.find("ok") == nullptr);
  CHECK(read.find("bad") != nullptr);
}

TEST_CASE("malformed pods are read without a crash") {
  for (const char* text :
       {"null", "[]", "{}", R"({"metadata":7})", R"({"metadata":{"name":"x"}})"}) {
    CAPTURE(text);
    CHECK_FALSE(LogPod::read(*kube::parse_json(text), kHook));
  }
  for (const auto& [status, containers] : std::vector<std::pair<std::string, std::size_t>>{
           {"[]", 0},
           {R"({"containerStatuses":[7,{"name":1,"state":3,"restartCount":"x"}]})", 2}}) {
    CAPTURE(status);
    const auto read = LogPod::read(
        *kube::parse_json(
            R"({"metadata":{"name":"x","labels":{"jobset.sigs.k8s.io/replicatedjob-name":"n"}},)"
            R"("status":)" +
            status + "}"),
        kHook);
    REQUIRE(read);
    REQUIRE(read->containers.size() == containers);
    for (const LogContainer& container : read->containers) {
      CHECK(container.name.empty());
      CHECK(container.restarts == 0);
      CHECK_FALSE(container.has_log);
      CHECK_FALSE(container.exit_code);
    }
  }
}

TEST_CASE("initializers are not nodes") {
  const LogPod node = pod("{}");
  CHECK(is_chosen(node, std::nullopt));
  CHECK(is_chosen(node, 3));
  CHECK_FALSE(is_chosen(node, 0));
  LogPod initializer = node;
  initializer.is_node = false;
  CHECK(is_chosen(initializer, std::nullopt));
  CHECK_FALSE(is_chosen(initializer, 3));
}

TEST_CASE("of several Jobs a node is one") {
  const LogPod node = pod("{}", R"(,"jobset.sigs.k8s.io/replicatedjob-replicas":"4",)"
                                R"("jobset.sigs.k8s.io/job-index":"1")");
  CHECK(is_chosen(node, 1));
  CHECK_FALSE(is_chosen(node, 3));
}

TEST_CASE("the query has sinceTime where it is known") {
  const LogPod target = pod("{}");
  const std::string base =
      "/api/v1/namespaces/ns/pods/j-node-0-3-x/log?container=node&timestamps=true";
  LogQuery query;
  CHECK(log_path(target, "node", query) == base);
  query.is_followed = true;
  query.since_seconds = 30;
  query.tail = 10;
  CHECK(log_path(target, "node", query) == base + "&follow=true&sinceSeconds=30&tailLines=10");
  query.since_time = "2026-08-20T10:00:00Z";
  query.is_previous = true;
  CHECK(log_path(target, "node", query) ==
        base + "&follow=true&previous=true&sinceTime=2026-08-20T10:00:00Z");
}
