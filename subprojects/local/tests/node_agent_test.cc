// The node agent against an API server in memory, with real processes.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "kube/tests/free_port.hh"
#include "local/node/strays.hh"
#include "local/tests/node_fixture.hh"

using namespace trainer;
using namespace trainer::test;

namespace {

std::vector<std::string> sh(const std::string& script) {
  return {"sh", "-c", script};
}

void add_env(Json& pod, const std::string& name, Json value) {
  pod["spec"]["containers"].as_array()[0]["env"].push_back(
      Json::object({{"name", name}}).set(value.is_object() ? "valueFrom" : "value", value));
}

// A pod of an Indexed Job of a JobSet, as names go.
Json make_rank(const std::string& job, int index, const std::vector<std::string>& command) {
  const std::string hostname = job + "-node-0-" + std::to_string(index);
  Json pod = make_pod(hostname + "-x7k2p", command);
  pod["spec"].set("hostname", hostname);
  pod["spec"].set("subdomain", job);
  return pod;
}

// Returns false for a zombie, which stays if process 1 reaps no orphans.
bool is_alive(pid_t process) {
  const std::string stat =
      node::read_file("/proc/" + std::to_string(process) + "/stat").value_or("");
  const auto at = stat.rfind(')');
  return at != std::string::npos && stat.size() > at + 2 && stat[at + 2] != 'Z';
}

pid_t read_pid(const std::filesystem::path& file) {
  pid_t process = 0;
  std::ifstream(file) >> process;
  return process;
}

}  // namespace

TEST_CASE("a pod runs to its end, with its log, its exit code and its message", "[node]") {
  const int tier = GENERATE(1, 2, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  Json pod = make_pod("p", sh("echo out; echo err >&2; exit 3"));
  pod["spec"]["containers"].as_array()[0].set("terminationMessagePolicy", "FallbackToLogsOnError");
  test.api->put(pod);
  test.until_phase("p", "Failed");
  CHECK(test.api->ended("p").get_int("exitCode") == 3);
  CHECK(test.api->ended("p").get_string("message").find("out\n") != std::string::npos);
  CHECK(test.log("p").find("err\n") != std::string::npos);
  const Json& status = test.api->pods.at("p").get("status");
  CHECK(status.get_string("podIP").starts_with(tier == 3 ? "127.0.0.1" : "127."));
  CHECK(status.get_string("hostIP") == "127.0.0.1");
  test.api->put(make_pod("q", {"true"}));
  test.until_phase("q", "Succeeded");
  test.api->put(make_pod("r", {"no-such-program"}));
  test.until_phase("r", "Failed");
  CHECK(test.api->ended("r").get_string("reason") == "StartError");
}

TEST_CASE("a container that fails is soon started again, and its logs are kept apart", "[node]") {
  NodeTest test(3);
  const std::string file = test.folder.path / "failed";
  const std::string gate = test.folder.path / "gate";
  Json pod = make_pod("p", sh("if [ -e " + file + " ]; then while [ ! -e " + gate +
                              " ]; do sleep 0.05; done; echo trained; exit 0; fi; touch " + file +
                              "; echo failed; exit 1"));
  pod["spec"].set("restartPolicy", "OnFailure");
  test.api->put(pod);
  test.until("it has ended once",
             [&] { return !test.api->container("p").get("lastState").empty(); });
  test.until("its log is kept", [&] { return test.log("p", true) == "failed\n"; });
  std::ofstream(gate) << "go";
  test.until_phase("p", "Succeeded");
  CHECK(test.api->container("p").get_int("restartCount") == 1);
  CHECK(test.log("p") == "trained\n");
  CHECK(test.log("p", true) == "failed\n");
}

TEST_CASE("a container that cannot be started is tried again where its policy says so", "[node]") {
  NodeTest test(3);
  const auto program = test.folder.path / "program";
  Json pod = make_pod("p", {program});
  pod["spec"].set("restartPolicy", GENERATE("OnFailure", "Always"));
  test.api->put(pod);
  test.until("it waits", [&] {
    return test.api->container("p").get_path({"state", "waiting"}).get_string("reason") ==
           "CrashLoopBackOff";
  });
  CHECK(test.api->phase("p") == "Running");
  const Json& last = test.api->container("p").get_path({"lastState", "terminated"});
  CHECK(last.get_string("reason") == "StartError");
  std::filesystem::create_symlink("/bin/cat", program);
  // It reads an empty input and ends at once, so that it may never be reported as running.
  test.until("it has started", [&] {
    const Json& container = test.api->container("p");
    return container.get_path({"state", "running"}).is_object() ||
           container.get_path({"lastState", "terminated"}).get_string("reason") == "Completed" ||
           test.api->phase("p") == "Succeeded";
  });
  CHECK(test.api->container("p").get_int("restartCount") > 0);
}

TEST_CASE("a pod's end is not lost where it cannot be written at once", "[node]") {
  const int tier = GENERATE(1, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  test.api->put(make_pod("p", sh("echo up; sleep 1")));
  test.until("it runs", [&] { return test.log("p").find("up") != std::string::npos; });
  // The new file cannot be made, like on a full disk.
  const auto obstacle = test.directory("p") / "status.json.new";
  std::filesystem::create_directory(obstacle);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  std::filesystem::remove(obstacle);
  test.until_phase("p", "Succeeded");
}

TEST_CASE("a termination message that is no file is none, and one without an end is cut",
          "[node]") {
  NodeTest test(3);
  test.api->put(make_pod("fifo", sh("rm /dev/termination-log; mkfifo /dev/termination-log")));
  test.until_phase("fifo", "Succeeded");
  CHECK(test.api->ended("fifo").get_string("message").empty());
  test.api->put(make_pod("zero", sh("ln -sf /dev/zero /dev/termination-log")));
  test.until_phase("zero", "Succeeded");
  CHECK(test.api->ended("zero").get_string("message").size() == 4'096);
}

TEST_CASE("ranks find each other by name on one port, two jobs side by side", "[node]") {
  const int tier = GENERATE(1, 2);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  // An address is made from names: no other run on this machine has the same ones.
  const std::string suffix = std::to_string(getpid());
  for (const std::string& job : {"a" + suffix, "b" + suffix}) {
    Json worker = make_rank(job, 1, {own_program(), "send", "$(MASTER)", "29500", "of-" + job});
    add_env(worker, "MASTER", job + "-node-0-0." + job);
    const Json master = make_rank(job, 0, {own_program(), "serve", "29500"});
    // All pods of a job are there before the first is bound.
    for (Json pod : {worker, master}) {
      pod["spec"].erase("nodeName");
      test.api->put(pod);
    }
    test.api->put(worker);
    test.api->put(master);
  }
  for (const std::string& job : {"a" + suffix, "b" + suffix}) {
    test.until_phase(job + "-node-0-1-x7k2p", "Succeeded");
    test.until_phase(job + "-node-0-0-x7k2p", "Succeeded");
    CHECK(test.log(job + "-node-0-0-x7k2p").find("got of-" + job) != std::string::npos);
  }
}

TEST_CASE("a pod is Ready while it runs, and ends by SIGTERM when it is deleted", "[node]") {
  const int tier = GENERATE(1, 2, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  test.api->put(make_pod("p", sh("trap 'echo asked; exit 0' TERM; echo up; "
                                 "while true; do sleep 0.05; done")));
  test.until_phase("p", "Running");
  const auto& conditions = test.api->pods.at("p").get("status").get_array("conditions");
  CHECK(std::any_of(conditions.begin(), conditions.end(), [](const Json& each) {
    return each.get_string("type") == "Ready" && each.get_string("status") == "True";
  }));
  test.until("it has set its trap", [&] { return test.log("p").find("up") != std::string::npos; });
  const auto directory = test.directory("p");
  test.api->remove("p", 30);
  test.until("it is gone", [&] { return test.api->pods.empty(); });
  test.until("its files are gone", [&] { return !std::filesystem::exists(directory); });
}

TEST_CASE("what ignores SIGTERM is killed after its grace", "[node]") {
  NodeTest test(3);
  test.api->put(make_pod("p", sh("trap '' TERM; echo up; while true; do sleep 0.05; done")));
  test.until("it ignores the signal",
             [&] { return test.log("p").find("up") != std::string::npos; });
  test.api->remove("p", 1);
  test.until("it is gone", [&] { return test.api->pods.empty(); });
}

TEST_CASE("a pod ends at its deadline, also one that waits", "[node]") {
  NodeTest test(3);
  Json runs = make_pod("runs", sh("trap 'exit 0' TERM; echo up; while true; do sleep 0.05; done"));
  Json waits = make_pod("waits", sh("true"));
  add_env(waits, "VALUE",
          Json::object({{"configMapKeyRef", Json::object({{"name", "none"}, {"key", "k"}})}}));
  for (Json pod : {runs, waits}) {
    pod["spec"].set("activeDeadlineSeconds", 4);
    test.api->put(pod);
  }
  for (const char* name : {"runs", "waits"}) {
    test.until_phase(name, "Failed");
    CHECK(test.api->pods.at(name).get("status").get_string("reason") == "DeadlineExceeded");
  }
  CHECK(test.log("runs") == "up\n");
}

TEST_CASE("a deadline goes by the clock that is never set", "[node]") {
  NodeTest test(3);
  Json pod = make_pod("p", sh("trap 'exit 0' TERM; echo up; while true; do sleep 0.05; done"));
  pod["spec"].set("activeDeadlineSeconds", 3);
  test.api->put(pod);
  const auto begin = test.clock.steady();
  test.until_phase("p", "Running");
  const std::chrono::seconds jump = GENERATE(std::chrono::hours(-24), std::chrono::hours(24));
  test.clock.ahead = jump;
  pod = test.api->pods.at("p");
  pod["metadata"]["labels"].set("changed", "yes");
  test.api->put(pod);  // it is checked again
  test.until_phase("p", "Failed");
  CHECK(test.clock.steady() - begin >= std::chrono::seconds(2));  // startTime has whole seconds
  CHECK(test.api->pods.at("p").get("status").get_string("reason") == "DeadlineExceeded");
}

TEST_CASE("aliases of hosts are known to a pod", "[node]") {
  const int tier = GENERATE(1, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  Json pod = make_pod("p", sh(tier == 1 ? "grep storage.x /etc/hosts" : "echo $AT storage.x"));
  add_env(pod, "AT", "storage.x");
  pod["spec"]["hostAliases"].push_back(
      Json::object({{"ip", "10.0.0.9"}, {"hostnames", Json::array({"storage.x"})}}));
  test.api->put(pod);
  test.until_phase("p", "Succeeded");
  CHECK(test.log("p").starts_with("10.0.0.9"));
}

TEST_CASE("pods go on without an agent, and the next one adopts them", "[node]") {
  const int tier = GENERATE(1, 2, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  const std::string starts = test.folder.path / "starts";
  test.api->put(make_pod("p", sh("echo start >> " + starts + "; while [ ! -e " + starts +
                                 ".go ]; do sleep 0.05; done; exit 7")));
  test.api->put(make_pod("q", sh("exit 5")));
  test.until_phase("p", "Running");
  test.stop();
  SECTION("while they run") {
    test.start();
    std::ofstream(starts + ".go") << "go";
  }
  SECTION("after they have ended") {
    std::ofstream(starts + ".go") << "go";
    REQUIRE(kube::run_until(*test.io, [&] { return test.report("p").get_bool("isOver"); }));
    test.start();
  }
  test.until_phase("p", "Failed");
  test.until_phase("q", "Failed");
  CHECK(test.api->ended("p").get_int("exitCode") == 7);
  CHECK(test.api->ended("q").get_int("exitCode") == 5);
  std::ifstream file(starts);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text == "start\n");
}

TEST_CASE("each pod starts once, wherever the agent is cut off", "[node]") {
  constexpr int kPods = 8;
  NodeTest test(3);
  const std::string file = test.folder.path / "starts";
  for (int i = 0; i < kPods; ++i)
    test.api->put(
        make_pod("p" + std::to_string(i), sh("echo $HOSTNAME >> " + file + "; sleep 0.1")));
  for (int steps = 1; steps < 200; steps += 7) {
    for (int step = 0; step < steps; ++step) test.io->poll_one();
    test.stop();
    test.start();
  }
  for (int i = 0; i < kPods; ++i) test.until_phase("p" + std::to_string(i), "Succeeded");
  std::ifstream read(file);
  std::multiset<std::string> starts{std::istream_iterator<std::string>(read), {}};
  CHECK(starts.size() == kPods);
  CHECK(std::set<std::string>(starts.begin(), starts.end()).size() == kPods);
}

TEST_CASE("a pod that was deleted without an agent is ended by the next one", "[node]") {
  NodeTest test(3);
  const std::string file = test.folder.path / "pid";
  test.api->put(make_pod("p", sh("echo $$$$ > " + file + "; exec sleep 1000")));
  test.until_phase("p", "Running");
  test.until("it has written", [&] { return read_pid(file) > 0; });
  test.stop();
  test.api->pods.clear();
  test.start();
  const pid_t process = read_pid(file);
  test.until("its process is gone", [&] { return !is_alive(process); });
}

TEST_CASE("a killed shim takes its pod along, which has failed with 137", "[node]") {
  const int tier = GENERATE(1, 2, 3);
  if (!has_tier(tier)) return;
  NodeTest test(tier);
  test.api->put(make_pod("p", sh("setsid sleep 1000 & sleep 1001")));
  test.until_phase("p", "Running");
  const std::string uid(test.api->pods.at("p").get("metadata").get_string("uid"));
  kill(static_cast<pid_t>(test.report("p").get_int("pid")), SIGKILL);
  test.until_phase("p", "Failed");
  CHECK(test.api->ended("p").get_int("exitCode") == 137);
  test.until("nothing of it is left", [&] { return node::kill_marked(uid); });
}

TEST_CASE("a shim that was killed before it began anything is started again", "[node]") {
  NodeTest test(3);
  test.api->put(make_pod("p", sh("sleep 1000")));
  test.until_phase("p", "Running");
  // The state is the one after the agent and the shim were killed when the directory had been made.
  const auto directory = test.directory("p");
  test.stop();
  kill(static_cast<pid_t>(test.report("p").get_int("pid")), SIGKILL);
  REQUIRE(kube::run_until(*test.io, [&] { return bool(node::lock_pod(directory)); }));
  node::kill_marked(std::string(test.api->pods.at("p").get("metadata").get_string("uid")));
  std::filesystem::remove(directory / node::kStatusFile);
  test.api->pods.at("p")["status"].set("phase", "Pending");
  test.start();
  test.until_phase("p", "Running");
}

TEST_CASE("a pod waits for a ConfigMap that it needs", "[node]") {
  NodeTest test(3);
  Json pod = make_pod("p", sh("echo is $VALUE; cat $FILE"));
  Json selector = Json::object({{"name", "c"}, {"key", "k"}});
  add_env(pod, "VALUE", Json::object({{"configMapKeyRef", selector}}));
  add_env(pod, "FILE", "/etc/hostname");
  test.api->put(pod);
  test.until("it says what is missing", [&] {
    return kube::print_json(test.api->pods.at("p")).find("ConfigMap \\\"c\\\" not found") !=
           std::string::npos;
  });
  CHECK(test.log("p").find("is waiting to start") != std::string::npos);
  test.api->objects["/api/v1/namespaces/ns/configmaps/c"] =
      Json::object({{"data", Json::object({{"k", "v"}})}});
  test.until_phase("p", "Succeeded");
  CHECK(test.log("p").find("is v\n") != std::string::npos);
}

TEST_CASE("volumes and mounts are at their paths", "[node]") {
  if (!has_tier(1)) return;
  NodeTest test(1);
  std::ofstream(test.folder.path / "given") << "given";
  Json pod = make_pod("p", sh("cat /etc/mpi/k /workspace/given; echo x > /etc/mpi/k; df /dev/shm; "
                              "ls /scratch/deep && echo bye > /dev/termination-log; hostname"));
  Json& spec = pod["spec"];
  spec.set("hostname", "its-name");
  spec["volumes"].push_back(
      Json::object({{"name", "m"}, {"configMap", Json::object({{"name", "c"}})}}));
  spec["volumes"].push_back(Json::object({{"name", "e"}, {"emptyDir", Json::object()}}));
  Json& container = spec["containers"].as_array()[0];
  container["volumeMounts"].push_back(
      Json::object({{"name", "m"}, {"mountPath", "/etc/mpi"}, {"readOnly", true}}));
  container["volumeMounts"].push_back(
      Json::object({{"name", "e"}, {"mountPath", "/scratch/deep"}}));
  test.api->objects["/api/v1/namespaces/ns/configmaps/c"] =
      Json::object({{"data", Json::object({{"k", "of the map\n"}})}});
  test.stop();
  test.mounts = {test.folder.path.native() + ":/workspace"};
  test.start();
  test.api->put(pod);
  test.until_phase("p", "Succeeded");
  const std::string log = test.log("p");
  CHECK(log.find("of the map\n") != std::string::npos);
  CHECK(log.find("given") != std::string::npos);
  CHECK(log.find("Read-only") != std::string::npos);
  CHECK(log.find("tmpfs") != std::string::npos);
  CHECK(log.find("its-name") != std::string::npos);
  CHECK(test.api->ended("p").get_string("message") == "bye\n");
}

TEST_CASE("a subPath leads through links of its volume, and not out of it", "[node]") {
  if (!has_tier(1)) return;
  NodeTest test(1);
  const auto volume = test.folder.path / "volume";
  std::filesystem::create_directories(volume / "real");
  std::filesystem::create_directories(test.folder.path / "outside");
  std::ofstream(volume / "real" / "file") << "of the volume\n";
  std::ofstream(test.folder.path / "outside" / "file") << "of others\n";
  std::filesystem::create_directory_symlink("real", volume / "inner");
  std::filesystem::create_directory_symlink("../outside", volume / "outer");
  std::filesystem::create_directory_symlink(test.folder.path / "outside", volume / "absolute");
  const auto run = [&](const std::string& name, const std::string& sub_path) {
    Json pod = make_pod(name, sh("cat /m/file; echo end"));
    pod["spec"]["volumes"].push_back(
        Json::object({{"name", "v"}, {"hostPath", Json::object({{"path", volume.native()}})}}));
    Json mount = Json::object({{"name", "v"}, {"mountPath", "/m"}, {"subPath", sub_path}});
    pod["spec"]["containers"].as_array()[0]["volumeMounts"].push_back(std::move(mount));
    test.api->put(pod);
  };
  run("inner", "inner");
  test.until_phase("inner", "Succeeded");
  CHECK_THAT(test.log("inner"), Catch::Contains("of the volume") && Catch::Contains("end"));
  run("fresh", "inner/made/deep");
  test.until_phase("fresh", "Succeeded");
  CHECK(std::filesystem::is_directory(volume / "real/made/deep"));
  for (const char* link : {"outer", "absolute", "outer/made"}) {
    const std::string name = std::string("out-") + link[0] + std::to_string(std::strlen(link));
    run(name, link);
    test.until("it is refused", [&] {
      const std::string text = kube::print_json(test.api->pods.at(name));
      return text.find("leads out of the volume") != std::string::npos;
    });
    CHECK(test.log(name).find("of others") == std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(test.folder.path / "outside" / "made"));
}

TEST_CASE("a claim begins empty, and its data goes with it", "[node]") {
  if (!has_tier(1)) return;
  NodeTest test(1);
  const auto folder = [&test](const char* uid) { return test.folder.path / "volumes" / uid; };
  const auto put_pod = [&test](const std::string& name, const std::string& script) {
    Json pod = make_pod(name, sh("cd /data; " + script));
    Json claim = Json::object({{"claimName", "data"}});
    pod["spec"]["volumes"].push_back(
        Json::object({{"name", "v"}, {"persistentVolumeClaim", std::move(claim)}}));
    pod["spec"]["containers"].as_array()[0]["volumeMounts"].push_back(
        Json::object({{"name", "v"}, {"mountPath", "/data"}}));
    test.api->put(pod);
  };
  test.api->put_claim("data", "first");
  put_pod("writes", "echo kept > file");
  test.until_phase("writes", "Succeeded");
  put_pod("uses", "cat file; while [ ! -e end ]; do sleep 0.05; done");
  test.until("it has read", [&] { return test.log("uses") == "kept\n"; });
  test.api->erase_claim("data");
  test.api->put_claim("data", "second");
  put_pod("later", "ls");
  test.until_phase("later", "Succeeded");
  CHECK(test.log("later").empty());
  // It is deleted once no pod uses it.
  CHECK(std::filesystem::exists(folder("first") / "file"));
  std::ofstream(folder("first") / "end") << "now";
  test.until_phase("uses", "Succeeded");
  test.until("its data is gone", [&] { return !std::filesystem::exists(folder("first")); });
  CHECK(std::filesystem::exists(folder("second")));
  // The pod is deleted while no agent runs.
  test.stop();
  test.api->objects.clear();
  test.start();
  test.until("its data is gone", [&] { return !std::filesystem::exists(folder("second")); });
}

TEST_CASE("a claim keeps what an earlier version has stored under its name", "[node]") {
  NodeTest test(3);
  test.stop();
  std::filesystem::create_directories(test.folder.path / "claims/ns/data");
  std::ofstream(test.folder.path / "claims/ns/data/file") << "kept";
  test.api->put_claim("data", "uid");
  test.start();
  test.until("it is moved",
             [&] { return std::filesystem::exists(test.folder.path / "volumes/uid/file"); });
}

TEST_CASE("what this machine cannot do is refused with the field", "[node]") {
  NodeTest test(3);
  Json pod = make_pod("p", {"true"});
  pod["spec"]["containers"].as_array()[0].erase("command");
  test.api->put(pod);
  test.until_phase("p", "Failed");
  const Json& status = test.api->pods.at("p").get("status");
  CHECK(status.get_string("reason") == "NotSupported");
  CHECK(status.get_string("message").starts_with("spec.containers[0].command: "));
}

TEST_CASE("a tier that the machine has not is refused, and a node says which one it has",
          "[node]") {
  NodeTest test(3);
  CHECK(test.agent->status().tier == 3);
  const auto notices = test.agent->status().notices;
  REQUIRE(notices.size() == 2);
  CHECK_THAT(notices[1], Catch::StartsWith("other users of this machine, and other machines") &&
                             Catch::Contains("a machine that `local status` shows in tier 1"));
  test.until("the node is written", [&] { return test.api->nodes.size() >= 2; });
}

TEST_CASE("a pod is ready when its port is served", "[node]") {
  if (!has_tier(2)) return;
  NodeTest test(2);
  const std::int64_t port = kube::free_port();
  Json pod = make_pod("p", {own_program(), "serve", std::to_string(port)});
  Json probe = Json::object({{"tcpSocket", Json::object({{"port", port}})}, {"periodSeconds", 1}});
  pod["spec"]["containers"].as_array()[0].set("readinessProbe", probe);
  test.api->put(pod);
  test.until("it is ready", [&] {
    const auto& statuses = test.api->pods.at("p").get("status").get_array("containerStatuses");
    return !statuses.empty() && statuses[0].get_bool("ready");
  });
}
