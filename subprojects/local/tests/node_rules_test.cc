// The rules of the node that need no processes, as tables.
#include <arpa/inet.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <random>

#include "kube/model/names.hh"
#include "local/node/container_state.hh"
#include "local/node/files.hh"
#include "local/node/log_reader.hh"
#include "local/node/log_writer.hh"
#include "local/node/make_config.hh"
#include "local/node/pod_status.hh"
#include "local/node/ports.hh"
#include "local/node/readiness.hh"
#include "local/tests/node_fixture.hh"

using namespace trainer::node;
using trainer::test::Folder;
using trainer::test::Json;

namespace {

Json parse(const std::string& text) {
  const auto value = kube::parse_json(text);
  REQUIRE(value);
  return *value;
}

SocketAddress address_of(const std::string& host, std::uint16_t port) {
  SocketAddress made{};
  if (inet_pton(AF_INET, host.c_str(), &made.v4.sin_addr) == 1) {
    made.v4.sin_family = AF_INET;
    made.v4.sin_port = htons(port);
  } else {
    REQUIRE(inet_pton(AF_INET6, host.c_str(), &made.v6.sin6_addr) == 1);
    made.v6.sin6_family = AF_INET6;
    made.v6.sin6_port = htons(port);
  }
  return made;
}

std::string text_of(const std::optional<SocketAddress>& address) {
  char text[INET6_ADDRSTRLEN] = "nowhere";
  if (address && address->any.sa_family == AF_INET)
    inet_ntop(AF_INET, &address->v4.sin_addr, text, sizeof text);
  if (address && address->any.sa_family == AF_INET6)
    inet_ntop(AF_INET6, &address->v6.sin6_addr, text, sizeof text);
  return text;
}

Json sample_pod() {
  return parse(R"json({"metadata":{"name":"p","namespace":"ns","uid":"u","labels":{"l":"1"},
      "annotations":{"a/b":"2"}},"spec":{"restartPolicy":"Never","hostname":"h","subdomain":"s",
      "volumes":[{"name":"e","emptyDir":{}},{"name":"s","emptyDir":{"medium":"Memory"}},
        {"name":"k","secret":{"secretName":"sec","defaultMode":256}},
        {"name":"h","hostPath":{"path":"/data"}}],
      "containers":[{"name":"c","image":"i","command":["run","$(RANK)","$$(RANK)","$(NONE)"],
        "args":["--at=h.s:1"],"resources":{"limits":{"cpu":"1500m"}},
        "env":[{"name":"RANK","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['a/b']"}}},
          {"name":"NEXT","value":"after $(RANK)"},
          {"name":"CPUS","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
          {"name":"KEY","valueFrom":{"secretKeyRef":{"name":"sec","key":"k"}}},
          {"name":"MAYBE","valueFrom":{"secretKeyRef":{"name":"sec","key":"z","optional":true}}}],
        "volumeMounts":[{"name":"s","mountPath":"/dev/shm"}]}]
}
})json");
}

PodContext place_of(const Json& pod) {
  PodContext place;
  place.volumes = {"/state/pods/u", "/state/claims"};
  place.name = PodName::of(pod);
  place.facts = {"local", "127.0.0.1", "127.64.0.9", {}};
  place.names = {{"h.s", "127.64.0.9"}, {"h.s.ns", "127.64.0.9"}};
  return place;
}

Sources secrets() {
  Sources sources;
  sources.secrets["sec"] = parse(R"({"data":{"k":"dmFsdWU="}})");
  return sources;
}

// This is a limit of this process, while the object exists.
struct Limit {
  Limit(__rlimit_resource of, rlim_t most) : resource(of) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(resource, &before);
    const rlimit lower{most, before.rlim_max};
    REQUIRE(setrlimit(resource, &lower) == 0);
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { setrlimit(resource, &before); }
  const __rlimit_resource resource;
  rlimit before{};
};

bool has(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

TEST_CASE("which bind() and connect() calls are moved", "[node]") {
  in_addr own{};
  inet_pton(AF_INET, "127.64.0.9", &own);
  struct Row {
    const char* host;
    std::uint16_t port;
    const char* bind;
    const char* connect;  // the connect() after the pod has bound 29500
  };
  const Row row = GENERATE(values<Row>({
      {"0.0.0.0", 29500, "127.64.0.9", "127.64.0.9"},
      {"127.0.0.1", 29500, "127.64.0.9", "127.64.0.9"},
      {"127.0.0.1", 9000, "127.64.0.9", "nowhere"},  // the host's
      {"127.0.0.1", 0, "nowhere", "nowhere"},
      {"0.0.0.0", 0, "nowhere", "nowhere"},
      {"127.64.0.7", 29500, "nowhere", "nowhere"},  // another pod
      {"10.1.2.3", 29500, "nowhere", "nowhere"},
      {"::", 29500, "::ffff:127.64.0.9", "::ffff:127.64.0.9"},
      {"::1", 29500, "::ffff:127.64.0.9", "::ffff:127.64.0.9"},
      {"::ffff:127.0.0.1", 29500, "::ffff:127.64.0.9", "::ffff:127.64.0.9"},
      {"2001:db8::1", 29500, "nowhere", "nowhere"},
  }));
  INFO(row.host << ":" << row.port);
  const SocketAddress address = address_of(row.host, row.port);
  CHECK(text_of(redirect_bind(address, own)) == row.bind);
  CHECK(text_of(redirect_connect(address, own, {29500})) == row.connect);
  CHECK(port_of(address) == row.port);
}

TEST_CASE("variables are expanded as kubelet does", "[node]") {
  const kube::StringMap variables{{"A", "1"}, {"B", "$(A)"}};
  CHECK(expand("$(A) $(B) $(C) $$(A) $$$(A) $A $(A $", variables) ==
        "1 $(A) $(C) $(A) $1 $A $(A $");
}

TEST_CASE("a container's environment and command come from its pod", "[node]") {
  const Json pod = sample_pod();
  NodeFacts node;
  node.environment = {{"PATH", "/bin"}, {"NEXT", "of the host"}};
  SECTION("with namespaces") {
    node.tier = Tier::kNamespaces;
    const auto config = make_config(pod, secrets(), place_of(pod), node);
    REQUIRE(config);
    const ContainerConfig& container = config->containers.at(0);
    CHECK(container.argv ==
          std::vector<std::string>{"run", "2", "$(RANK)", "$(NONE)", "--at=h.s:1"});
    for (const char* variable : {"RANK=2", "NEXT=after 2", "CPUS=2", "KEY=value", "PATH=/bin",
                                 "HOSTNAME=h", "TRAINER_POD_UID=u"})
      CHECK(has(container.env, variable));
    CHECK(config->address == "127.64.0.9");
    // It is the pod's own volume, and none that every pod has.
    CHECK(std::count_if(container.mounts.begin(), container.mounts.end(), [](const Mount& mount) {
            return mount.target == "/dev/shm" && mount.source.ends_with("/volumes/s");
          }) == 1);
    CHECK(read_pod_config(to_json(*config)) == *config);
  }
  SECTION("without, names become addresses") {
    node.tier = Tier::kPorts;
    const auto config = make_config(pod, secrets(), place_of(pod), node);
    REQUIRE(config);
    CHECK(config->containers.at(0).argv.back() == "--at=127.64.0.9:1");
    CHECK(config->containers.at(0).mounts.empty());
  }
  SECTION("on the host's network it has the host's ports") {
    node.tier = Tier::kPorts;
    Json hosted = pod;
    hosted["spec"].set("hostNetwork", true);
    CHECK(make_config(hosted, secrets(), place_of(pod), node)->address.empty());
  }
  SECTION("a Secret that does not exist is awaited") {
    const auto config = make_config(pod, Sources(), place_of(pod), node);
    REQUIRE(!config);
    CHECK(config.error().code == kube::ErrorCode::kNotFound);
    CHECK(config.error().message == "spec.containers[0]: c: KEY: Secret \"sec\" not found");
  }
}

TEST_CASE("what a node refuses names the field", "[node]") {
  struct Row {
    const char* member;
    const char* value;
    const char* begins;
  };
  const Row row = GENERATE(values<Row>({
      {"command", "[]", "spec.containers[0].command: "},
      {"livenessProbe", R"({"exec":{}})", "spec.containers[0].livenessProbe: "},
      {"startupProbe", R"({"exec":{}})", "spec.containers[0].startupProbe: "},
      {"volumeDevices", R"([{"name":"e","devicePath":"/dev/x"}])",
       "spec.containers[0].volumeDevices: "},
      {"readinessProbe", R"({"httpGet":{"port":1}})", "spec.containers[0].readinessProbe: "},
      {"lifecycle", R"({"preStop":{}})", "spec.containers[0].lifecycle: "},
      {"securityContext", R"({"privileged":true})", "spec.containers[0].securityContext"},
      {"volumeMounts", R"([{"name":"e","mountPath":"/x"}])",
       "spec.containers[0].volumeMounts[0]: /x cannot be mounted"},
      {"volumeMounts", R"([{"name":"none","mountPath":"/x"}])",
       "spec.containers[0].volumeMounts[0]: there is no volume"},
  }));
  Json pod = sample_pod();
  pod["spec"]["containers"].as_array()[0].set(row.member, parse(row.value));
  NodeFacts node;
  node.tier = Tier::kPorts;
  const auto config = make_config(pod, secrets(), place_of(pod), node);
  REQUIRE(!config);
  CHECK(config.error().code == kube::ErrorCode::kUnsupported);
  CHECK_THAT(config.error().message, kube::test::starts_with(row.begins));
}

TEST_CASE("a node refuses fields of the pod, too", "[node]") {
  struct Row {
    const char* member;
    const char* value;
    const char* message;
  };
  const Row row = GENERATE(values<Row>({
      {"hostPID", "true",
       "spec.hostPID: pods of local mode have their own process numbers: remove it"},
      {"initContainers", R"([{"name":"i","command":["x"],"restartPolicy":"Always"}])",
       "spec.initContainers[0].restartPolicy: local mode has no sidecars among init containers: "
       "make it one of containers"},
  }));
  Json pod = sample_pod();
  pod["spec"].set(row.member, parse(row.value));
  const auto config = make_config(pod, secrets(), place_of(pod), NodeFacts());
  REQUIRE(!config);
  CHECK(config.error().code == kube::ErrorCode::kUnsupported);
  CHECK(config.error().message == row.message);
}

TEST_CASE("a host path at its own place needs no mount", "[node]") {
  Json pod = sample_pod();
  pod["spec"]["containers"].as_array()[0].set("volumeMounts",
                                              parse(R"([{"name":"h","mountPath":"/data/"}])"));
  CHECK(make_config(pod, secrets(), place_of(pod), NodeFacts()));
}

TEST_CASE("volumes are made of what they name", "[node]") {
  const Json pod = sample_pod();
  const auto& volumes = pod.get("spec").get_array("volumes");
  const auto files = files_of(pod, volumes[2], secrets(), PodFacts());
  REQUIRE(files);
  CHECK(*files == std::vector<VolumeFile>{{"k", "value", 0400}});
  const Json projected = parse(R"({"name":"p","projected":{"sources":[
      {"secret":{"name":"sec","items":[{"key":"k","path":"d/f"}]}},
      {"downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}]}})");
  const auto of_many = files_of(pod, projected, secrets(), PodFacts());
  REQUIRE(of_many);
  CHECK(*of_many == std::vector<VolumeFile>{{"d/f", "value", 0644}, {"n", "p", 0644}});
  CHECK(source_of(pod, parse(R"({"name":"n","nfs":{}})"), VolumePlaces()).error().code ==
        kube::ErrorCode::kUnsupported);
}

TEST_CASE("no name that a user writes leads out of its folder", "[node]") {
  static const std::vector<std::string> kPieces = {"..",
                                                   ".",
                                                   "/",
                                                   "//",
                                                   "a",
                                                   "b-1",
                                                   std::string(1, '\0'),
                                                   "....",
                                                   "..a",
                                                   "%2f",
                                                   "\\",
                                                   "\u202e",
                                                   std::string(300, 'x'),
                                                   "state"};
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same names in every run
  const auto draw = [&random] {
    std::string text;
    for (auto left = random() % 6; left > 0; --left) text += kPieces[random() % kPieces.size()];
    return text;
  };
  const auto is_below = [](const std::filesystem::path& path, const std::string& folder) {
    const std::string normal = path.lexically_normal().native();
    return (normal + "/").starts_with(folder + "/") && normal.find('\0') == std::string::npos;
  };
  int refused = 0;
  for (int run = 0; run < 5'000; ++run) {
    const std::string name = draw();
    INFO(name);
    if (const auto child = child_of("/state/x", name)) {
      CHECK(child->parent_path() == "/state/x");
      CHECK(child->lexically_normal() == *child);
    } else {
      ++refused;
    }
    if (const auto path = path_below("/state/x", name)) CHECK(is_below(*path, "/state/x"));
    // All fields of a pod that become paths, with one of them hostile.
    Json pod = sample_pod();
    Json& spec = pod["spec"];
    Json& container = spec["containers"].as_array()[0];
    const Json claim = Json::object({{"claimName", name}});
    const auto field = random() % 5;
    Json volume = Json::object({{"name", field == 0 ? name : "v"}});
    volume.set(field == 1 ? "persistentVolumeClaim" : "emptyDir",
               field == 1 ? claim : Json::object());
    if (field == 0) volume["emptyDir"].set("medium", "Memory");
    spec["volumes"].push_back(std::move(volume));
    Json mount = Json::object({{"name", field == 0 ? name : "v"}, {"mountPath", "/m"}});
    if (field == 2) mount.set("subPath", name);
    container["volumeMounts"].push_back(std::move(mount));
    if (field == 3) container.set("name", name);
    if (field == 4) pod["metadata"].set("namespace", name);
    NodeFacts facts;
    facts.tier = Tier::kNamespaces;
    const auto config = make_config(pod, secrets(), place_of(pod), facts);
    if (!config) continue;
    for (const Mount& each : config->containers.at(0).mounts)
      CHECK(is_below(std::filesystem::path(each.source) / each.sub_path, "/state"));
    if (field == 1) CHECK(kube::check_dns1123_subdomain(name).empty());
    for (const MemoryVolume& each : config->memory_volumes)
      CHECK(is_below(each.path, "/state/pods/u/volumes"));
    CHECK(is_below(termination_file("/state/pods/u", config->containers.at(0).name),
                   "/state/pods/u/termination"));
    CHECK(is_below(log_file("/state/pods/u", config->containers.at(0).name), "/state/pods/u/logs"));
  }
  CHECK(refused > 1'000);
  CHECK_THAT(child_of("/x", std::string(300, 'a')).error().message,
             Catch::EndsWith("it has 300 bytes: use 255 at most"));
  CHECK_THAT(child_of("/x", "a\u202e/b").error().message,
             Catch::StartsWith("\"a\\u202e/b\" cannot be the name of a file: use letters"));
}

TEST_CASE("no path leads through links out of its folder", "[node]") {
  namespace fs = std::filesystem;
  std::mt19937 random(8);  // NOLINT(cert-msc51-cpp): the same trees in every run
  const auto pick = [&random](auto... texts) {
    const std::array<std::string, sizeof...(texts)> all{texts...};
    return all[random() % all.size()];
  };
  int opened = 0, refused = 0;
  for (int tree = 0; tree < 60; ++tree) {
    const Folder folder;
    const fs::path volume = fs::canonical(folder.path) / "volume";
    fs::create_directories(volume / "a" / "b");
    fs::create_directories(folder.path / "outside");
    for (int link = 0; link < 4; ++link) {
      std::error_code exists;
      const fs::path at = volume / pick("", "a", "a/b") / pick("x", "y");
      fs::create_symlink(pick("..", "../..", "a", "b", "x", "../y", "../outside", "/proc/self/root",
                              (folder.path / "outside").string(), volume.string(), "none"),
                         at, exists);
    }
    for (int run = 0; run < 30; ++run) {
      std::string path = pick("a", "x", "y");
      for (auto left = random() % 4; left > 0; --left)
        path += "/" + pick("a", "b", "x", "y", "new");
      INFO(path);
      const auto found = open_beneath(volume, path);
      ++(found ? opened : refused);
      if (!found) {
        CHECK_THAT(found.error().message, kube::test::contains(path));
        continue;
      }
      const auto real = fs::read_symlink("/proc/self/fd/" + std::to_string(found->get()));
      CHECK((real.native() + "/").starts_with(volume.native() + "/"));
    }
    CHECK(fs::is_empty(folder.path / "outside"));
    CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
  }
  CHECK(opened > 100);
  CHECK(refused > 100);
}

TEST_CASE("files of volumes stay in their volume", "[node]") {
  const Folder folder;
  const VolumePlaces places{folder.path / "pods/u", folder.path / "claims"};
  for (const char* path : {"../x", "a/../../x", "/x", "a/..", ".."}) {
    INFO(path);
    Json pod = sample_pod();
    const Json item = Json::object({{"key", "k"}, {"path", path}});
    Json secret = Json::object({{"secretName", "sec"}, {"items", Json::array({item})}});
    const Json volume = Json::object({{"name", "k"}, {"secret", std::move(secret)}});
    pod["spec"].set("volumes", Json::array({volume}));
    const auto made = make_volumes(pod, secrets(), {}, places);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == kube::ErrorCode::kUnsupported);
  }
}

TEST_CASE("names keep their addresses, and two names have two", "[node]") {
  AddressTable table, later;
  const PodName name{"ns", "h", "s"};
  const std::string address = table.address_of(name);
  CHECK(address.starts_with("127."));
  CHECK(later.address_of(name) == address);
  later.release(name);
  later.keep({"ns", "other", "s"}, address);
  CHECK(later.address_of(name) != address);
  const std::string hosts = hosts_text(
      name, address, {{name, address}, {{"ns", "i", "s"}, "127.1.1.1"}},
      aliases_of(parse(R"({"spec":{"hostAliases":[{"ip":"10.0.0.9","hostnames":["a","b.c"]}]}})")),
      "10.0.0.1 storage\n");
  CHECK(hosts.find(address + "\th.s.ns.svc.cluster.local h.s.ns.svc h.s.ns h.s h\n") !=
        std::string::npos);
  CHECK(hosts.find("127.1.1.1\ti.s.ns.svc.cluster.local") != std::string::npos);
  CHECK(hosts.find("\n10.0.0.9\ta\n10.0.0.9\tb.c\n") != std::string::npos);
  CHECK(hosts.ends_with("10.0.0.1 storage\n"));
  CHECK(nsswitch_text("passwd: files\nhosts: resolve\n") == "passwd: files\nhosts: files dns\n");
}

TEST_CASE("only whole names are replaced", "[node]") {
  const Replacements words{{"j-0.j", "A"}, {"j-0.j.ns", "B"}};
  CHECK(replace_words("j-0.j:1,xj-0.j j-0.j.ns. j-0.j.nsx (j-0.j) j-0.j.", words) ==
        "A:1,xj-0.j B. j-0.j.nsx (A) A.");
}

TEST_CASE("a container restarts as its pod's policy says, later each time", "[node]") {
  ContainerConfig config;
  config.name = "c";
  ContainerState state;
  state.config = &config;
  // The steady clock decides, whatever the other one was set to meanwhile.
  const std::int64_t jump = GENERATE(0, -86'400, 86'400);
  Moment now{kube::Time::from_seconds(1'000'000), Moment::Steady(std::chrono::hours(1))};
  int starts = 0;
  for (const std::int64_t expected : {1, 10, 20, 40, 80, 160, 300, 300}) {
    state.run(now);
    CHECK(!state.has_failed());
    CHECK(state.restarts == starts++);
    const auto end = now.steady + std::chrono::seconds(1);
    now.time = now.time.after(jump);
    state.end(1 << 8, "why", {now.time, end});
    CHECK(restarts_after("OnFailure", state, false));
    CHECK(!restarts_after("Never", state, false));
    state.wait_for_restart();
    CHECK(*state.start_at - end == std::chrono::seconds(expected));
    now.steady = *state.start_at;
  }
  const Json status = state.status("u");
  CHECK(status.get_int("restartCount") == 7);  // it waits for the next restart
  CHECK(status.get_path({"state", "waiting"}).get_string("reason") == "CrashLoopBackOff");
  CHECK(status.get_path({"lastState", "terminated"}).get_int("exitCode") == 1);
  state.fail_to_start("why", now);
  CHECK(state.restarts == 8);
  CHECK(restarts_after("OnFailure", state, false));
  state.end(SIGKILL, "", now);
  CHECK(state.exit_code == 137);
  state.end(0, "", now);
  CHECK(!restarts_after("OnFailure", state, false));
  CHECK(restarts_after("Always", state, false));
  CHECK(!restarts_after("Always", state, true));
}

TEST_CASE("the status of a pod follows its containers", "[node]") {
  static const Json running =
      parse(R"({"name":"c","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}})");
  static const Json done = parse(R"({"name":"c","state":{"terminated":{"exitCode":0}}})");
  static const Json failed = parse(R"({"name":"c","state":{"terminated":{"exitCode":2}}})");
  static const Json waiting = parse(R"({"name":"c","state":{"waiting":{}}})");
  struct Row {
    const Json* container;
    const Json* init;
    bool is_over;
    const char* phase;
    bool is_ready;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {&running, nullptr, false, "Running", true},
      {&running, &done, false, "Running", true},
      {&waiting, &running, false, "Pending", false},
      {&waiting, &failed, true, "Failed", false},
      {&done, nullptr, true, "Succeeded", false},
      {&failed, nullptr, true, "Failed", false},
      {&waiting, nullptr, true, "Failed", false},
  }));
  Json pod = parse(R"({"metadata":{"uid":"u"},"spec":{},"status":{"conditions":[
      {"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  Json report = Json::object({{"isOver", row.is_over}});
  report.set("containerStatuses", Json::array({*row.container}));
  if (row.init != nullptr) report.set("initContainerStatuses", Json::array({*row.init}));
  const kube::Time now = kube::Time::from_seconds(1'767'225'600);
  const Json status = pod_status(pod, report, {"127.0.0.1", "127.64.0.9", {}}, now);
  CHECK(status.get_string("phase") == row.phase);
  CHECK(status.get_array("containerStatuses").at(0).get_bool("ready") == row.is_ready);
  CHECK(status.get_array("conditions").size() == 4);
  const Json patch = status_patch(pod, status);
  CHECK(patch.get_path({"metadata", "uid"}) == Json("u"));
  pod.set("status", status);
  CHECK(status_patch(pod, pod_status(pod, report, {"127.0.0.1", "127.64.0.9", {}}, now)).is_null());
  if (row.is_over) return;
  const Json killed = report_of_killed(report, now);
  CHECK(killed.get_array("containerStatuses")
            .at(0)
            .get_path({"state", "terminated"})
            .get_int("exitCode") == 137);
}

TEST_CASE("a pod that its deadline has ended has failed", "[node]") {
  struct Row {
    const char* container;
    const char* phase;
    const char* reason;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"terminated":{"exitCode":0,"finishedAt":"2026-01-01T00:01:00Z"}})", "Failed",
       "DeadlineExceeded"},
      {R"({"terminated":{"exitCode":0,"finishedAt":"2026-01-01T00:00:59Z"}})", "Succeeded", ""},
      {R"({"terminated":{"exitCode":1,"finishedAt":"2026-01-01T00:00:59Z"}})", "Failed", ""},
      {R"({"waiting":{"reason":"CrashLoopBackOff"}})", "Failed", "DeadlineExceeded"},
  }));
  const Json pod = parse(R"({"metadata":{"uid":"u"},"spec":{"activeDeadlineSeconds":60},
      "status":{"startTime":"2026-01-01T00:00:00Z"}})");
  Json report = parse(R"({"isOver":true,"containerStatuses":[{"name":"c","lastState":{"x":{}}}]})");
  report["containerStatuses"].as_array()[0].set("state", parse(row.container));
  const kube::Time end = kube::Time::from_seconds(1'767'225'660);
  CHECK(active_deadline_of(pod) == std::chrono::seconds(60));
  const Json status = pod_status(pod, report, {"127.0.0.1", "127.64.0.9", {}, end}, end);
  CHECK(status.get_string("phase") == row.phase);
  CHECK(status.get_string("reason") == row.reason);
}

TEST_CASE("a log is read as it was written", "[node]") {
  const Folder folder;
  const auto file = folder.path / "c.log";
  const kube::Time now = kube::Time::from_seconds(1'767'225'600);
  const auto read = [&file](LogSelection selection) {
    LogReader reader(file, selection);
    std::string text;
    for (std::string piece; !(piece = reader.next()).empty();) text += piece;
    return text;
  };
  LogWriter writer(file, 400);
  writer.write(LogWriter::kOut, "one\ntw", now);
  writer.write(LogWriter::kErr, "err\n", now);
  writer.write(LogWriter::kOut, "o\nthree", now + std::chrono::seconds(5));
  LogReader follower(file, LogSelection());
  CHECK(follower.next() == "one\nerr\ntwo\n");
  CHECK(follower.next().empty());
  writer.finish(now + std::chrono::seconds(5));
  CHECK(follower.next() == "three\n");
  LogSelection selection;
  SECTION("all") {
    CHECK(read(selection) == "one\nerr\ntwo\nthree\n");
  }
  SECTION("tail") {
    selection.tail_lines = GENERATE(0, 1, 2, 9);
    const std::map<std::int64_t, std::string> expected{
        {0, ""}, {1, "three\n"}, {2, "two\nthree\n"}, {9, "one\nerr\ntwo\nthree\n"}};
    CHECK(read(selection) == expected.at(*selection.tail_lines));
  }
  SECTION("since") {
    selection.since = now + std::chrono::seconds(2);
    CHECK(read(selection) == "two\nthree\n");
  }
  SECTION("limit") {
    selection.limit_bytes = 6;
    CHECK(read(selection) == "one\ner");
  }
  SECTION("times") {
    selection.has_timestamps = true;
    selection.tail_lines = 1;
    CHECK(read(selection) == "2026-01-01T00:00:05.000000000Z three\n");
  }
  SECTION("a full file is followed by the next") {
    for (int i = 0; i < 3; ++i) writer.write(LogWriter::kOut, std::string(90, 'x') + "\n", now);
    std::string followed;
    for (std::string piece; !(piece = follower.next()).empty();) followed += piece;
    CHECK(std::count(followed.begin(), followed.end(), '\n') == 3);
    CHECK(std::filesystem::exists(older_log_file(file)));
  }
  SECTION("the log of the next start is another one") {
    CHECK(!follower.is_of_earlier_start());
    writer.write(LogWriter::kOut, "four\n", now);
    std::filesystem::rename(file, previous_log_file(file));
    LogWriter next(file);
    next.write(LogWriter::kOut, "of the next start\n", now);
    CHECK(follower.is_of_earlier_start());
    CHECK(follower.next() == "four\n");
    CHECK(follower.next().empty());
    CHECK(read(selection) == "of the next start\n");
  }
  SECTION("a long line is one line again") {
    const std::string line(40'000, 'y');
    LogWriter fresh(folder.path / "long.log");
    fresh.write(LogWriter::kOut, line + "\n", now);
    LogReader reader(folder.path / "long.log", LogSelection());
    std::string text;
    for (std::string piece; !(piece = reader.next()).empty();) text += piece;
    CHECK(text == line + "\n");
    CHECK(fresh.tail().size() <= 2'048);
  }
}

TEST_CASE("a log goes on after output that could not be written", "[node]") {
  const Folder folder;
  const auto file = folder.path / "c.log";
  const kube::Time now = kube::Time::from_seconds(1'767'225'600);
  const auto read = [](const std::filesystem::path& log) {
    LogReader reader(log, LogSelection());
    std::string text;
    for (std::string piece; !(piece = reader.next()).empty();) text += piece;
    return text;
  };
  LogWriter writer(file, 150);
  writer.write(LogWriter::kOut, "one\n", now);
  SECTION("a part of a line was") {
    {
      const Limit room(RLIMIT_FSIZE, std::filesystem::file_size(file) + 43);
      writer.write(LogWriter::kOut, "two and more\n", now);
      writer.write(LogWriter::kOut, "lost\n", now);
    }
    writer.write(LogWriter::kOut, "three\n", now);
    CHECK(read(file) == "one\ntwo\nthree\n");
  }
  SECTION("there was no new file") {
    {
      const Limit descriptors(RLIMIT_NOFILE, 0);
      writer.write(LogWriter::kOut, std::string(100, 'x') + "\n", now);
    }
    writer.write(LogWriter::kOut, "three\n", now);
    CHECK(read(file) == "one\nthree\n");
  }
}

TEST_CASE("a readiness probe finds the number of its port", "[node]") {
  const auto probe = readiness_probe_of(parse(
      R"({"ports":[{"name":"ssh","containerPort":2222}],"readinessProbe":{"tcpSocket":{"port":"ssh"}}})"));
  REQUIRE(probe);
  CHECK(probe->port == 2222);
  CHECK(probe->failure_threshold == 3);
  CHECK(!readiness_probe_of(Json::object()));
}
