// Objects that grow with the counts and texts of a job are measured before they are built, and
// refused if they are too large; no count that a user writes becomes negative or small.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <regex>

#include "kube/model/exec_limits.hh"
#include "kube/model/resources.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/v1/policies.hh"
#include "runtimes/v1/validate.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

__extension__ using Int128 = __int128;  // g++ warns about it without the keyword

std::string variable(const Json& pod, std::string_view name) {
  for (const Json& each : pod.get("spec").get_array("containers").front().get_array("env"))
    if (each.get_string("name") == name) return std::string(each.get_string("value"));
  return {};
}

std::int64_t largest_variable(const std::vector<Json>& children, std::string_view name) {
  std::size_t most = 0;
  for (const Json& child : children)
    for (const Json& container : child.get("spec").get_array("containers"))
      for (const Json& variable : container.get_array("env"))
        if (variable.get_string("name") == name)
          most = std::max(most, kube::exec_bytes(name, variable.get_string("value")));
  return static_cast<std::int64_t>(most);
}

std::int64_t config_map_bytes(const std::vector<Json>& children) {
  std::int64_t bytes = 0;
  for (const Json& child : children)
    if (child.get_string("kind") == "ConfigMap")
      for (const auto& [name, text] : child.get_object("data"))
        bytes += std::ssize(text.as_string());
  return bytes;
}

trainer::AdmissionAnswer admit(const Json& job) {
  trainer::AdmissionRequest request;
  request.operation = "CREATE";
  request.object = job;
  return trainer::validate_v1job(request, framework_of(job.get_string("kind")));
}

Json drawn_job(std::mt19937& random) {
  const auto count = [&random] { return random() % (random() % 2 == 0 ? 12 : 140); };
  const std::string text(random() % 50, 'x');
  const std::string name = "p" + std::string(random() % 20, 'n');
  switch (random() % 4) {
    case 0:
      return make_job(
          "TFJob", fmt::format("Chief PS*{} Worker*{} Other*{}", count(), count(), count()),
          random() % 2 ? "{enableDynamicWorker: true, roles: {Worker: {template: {spec: "
                         "{containers: [{name: tensorflow, image: i, ports: [{name: tfjob-port, "
                         "containerPort: 77}]}]}}}}}"
                       : "",
          name);
    case 1:
      return make_job("XGBoostJob", fmt::format("Master Worker*{}", count()), "", name);
    case 2:
      return make_job("PyTorchJob", "Worker*2",
                      fmt::format("elasticPolicy: {{rdzvHost: h{0}, rdzvId: i{0}, rdzvBackend: "
                                  "b{0}, rdzvConf: [{{key: k, value: v{0}}}, {{key: l{0}}}]}}",
                                  text),
                      name);
    default:
      return make_job(
          "MPIJob", fmt::format("Launcher Worker*{}", count()),
          fmt::format("{{slotsPerWorker: {}, mainContainer: m{}}}", random() % 5'000, text), name);
  }
}

}  // namespace

TEST_CASE("what is measured is what is built, or a little more") {
  std::mt19937 random(11);
  Settings settings;
  for (int run = 0; run < 200; ++run) {
    const Json object = drawn_job(random);
    const Framework& framework = framework_of(object.get_string("kind"));
    settings.cluster_domain = run % 2 ? "" : "cluster.example";
    INFO(kube::print_json(object.get("spec")));
    // There is no status: no worker runs yet, but discover_hosts.sh will have a line for each.
    const std::vector<Json> children = all_children(framework, read(object), settings);
    for (const GeneratedText& text :
         framework.measure(with_defaults(framework, read(object)), settings)) {
      INFO(text.name << " " << text.bytes);
      const std::int64_t built =
          text.is_in_pods ? largest_variable(children, text.name) : config_map_bytes(children);
      CHECK(built > 0);
      CHECK(text.bytes >= built);
      if (text.is_in_pods) CHECK(text.bytes <= built + 64);
    }
  }
}

TEST_CASE("the ConfigMap of an MPIJob is measured as it is once all workers run") {
  World world(make_job("MPIJob", "Launcher Worker*120", "slotsPerWorker: 8"));
  world.all_pods("Running");
  world.settle();
  const std::int64_t built = config_map_bytes({world.at("ConfigMap/p-config")});
  const Framework& framework = framework_of("MPIJob");
  const auto texts =
      framework.measure(with_defaults(framework, read(world.at("MPIJob/p"))), Settings());
  CHECK(built > 120 * 30);
  CHECK(texts.front().bytes >= built);
  CHECK(texts.front().bytes <= built + 400);
}

TEST_CASE("a job whose generated texts are too large is refused, and nothing of it is built") {
  struct Row {
    const char* kind;
    const char* roles;
    const char* more;
    std::string name;
    const char* error;
  };
  const std::string longest(53, 'a');
  const Row rows[] = {
      {"TFJob", "Worker*4000", "", "p", ""},
      {"TFJob", "Worker*9000", "", "p",
       "spec.tfReplicaSpecs: Invalid value: 232985: bytes in TF_CONFIG: at most 131072 are "
       "possible"},
      {"TFJob", "PS Worker*9000", "enableDynamicWorker: true", "p", ""},
      {"TFJob", "PS*9000 Worker", "enableDynamicWorker: true", "p", "bytes in TF_CONFIG"},
      {"XGBoostJob", "Master Worker*5000", "", "p", ""},
      {"XGBoostJob", "Master Worker*5000", "", longest.substr(4),
       "spec.xgbReplicaSpecs[Worker].replicas: Invalid value: 308903: bytes in WORKER_ADDRS"},
      {"JAXJob", "Worker*9000", "", "p", ""},
  };
  for (const Row& row : rows) {
    INFO(row.kind << " " << row.roles << " " << row.more);
    const auto answer = admit(make_job(row.kind, row.roles, row.more, row.name));
    INFO(answer.message);
    CHECK(answer.is_allowed == (*row.error == '\0'));
    if (*row.error != '\0') CHECK_THAT(answer.message, kube::test::contains(row.error));
  }
  // The job was stored before there was this rule, or scaled.
  World world;
  Json job = make_job("TFJob", "Worker*9000");
  job["metadata"].set("namespace", "ns");
  world.objects["TFJob/p"] = job;
  world.settle();
  CHECK(world.names("Pod").empty());
  CHECK(
      world.has_event("Warning TFJobFailedValidation: TFJob failed validation because "
                      "spec.tfReplicaSpecs: Invalid value: 250985: bytes in TF_CONFIG"));
  World mpi(make_job("MPIJob", "Launcher Worker*9999", "", std::string(60, 'm')));
  CHECK(mpi.writes == 0);
  CHECK(
      mpi.has_event("bytes in the ConfigMap with the hostfile: at most 1048576 are possible, "
                    "since Kubernetes takes no larger"));
}

TEST_CASE("many containers with the names of many pods are refused") {
  Json job = make_job("XGBoostJob", "Master Worker*900");
  Json& containers = job["spec"]["xgbReplicaSpecs"]["Worker"]["template"]["spec"]["containers"];
  for (int i = 0; i < 200; ++i)
    containers.push_back(yaml(fmt::format("{{name: c{}, image: i}}", i)));
  CHECK(admit(job).message.find("xgbReplicaSpecs[Worker].template.spec.containers: Invalid value: "
                                "201: containers: the variables that the controller adds") !=
        std::string::npos);
}

TEST_CASE("one reconcile builds a bounded number of bytes") {
  const Framework& framework = framework_of("TFJob");
  V1Job job = read(make_job("TFJob", "Worker*4000"));
  job.metadata.ns = "ns";
  kube::NamedObjects known;
  known.set({kube::kServices, {"ns", "p"}}, {});  // there is none
  const V1JobPlan first =
      plan({framework, job, {}, {}, known, {}, {}, Settings(), kube::Time::from_seconds(1)});
  std::int64_t bytes = 0;
  for (const kube::Action& action : first.actions)
    bytes += std::ssize(kube::print_json(action.body));
  CHECK(bytes > 1'000'000);
  CHECK(bytes < 24'000'000);
}

TEST_CASE("words that no process can be started with are refused at creation only") {
  const std::string text(131'072, 'x');
  const std::string container =
      "roles: {Worker: {template: {spec: {containers: [{name: pytorch, "
      "image: i, ";
  for (const auto& [member, path] : std::vector<std::pair<std::string, std::string>>{
           {"args: [a, " + text + "]", "args[1]"},
           {"command: [" + text + "]", "command[0]"},
           {"env: [{name: A, value: " + text.substr(2) + "}]", "env[0].value"}}) {
    const Json job = make_job("PyTorchJob", "Worker", container + member + "}]}}}}");
    const auto answer = admit(job);
    CHECK_FALSE(answer.is_allowed);
    CHECK(answer.message.find("spec.pytorchReplicaSpecs[Worker].template.spec.containers[0]." +
                              path + ": Too long: ") != std::string::npos);
    trainer::AdmissionRequest update;
    update.operation = "UPDATE";
    update.object = update.old_object = job;
    update.object["spec"]["runPolicy"].set("suspend", true);
    CHECK(trainer::validate_v1job(update, framework_of("PyTorchJob")).is_allowed);
    // MPIJobs are checked at each reconcile: a running one has its rules without this one.
    const V1Job mpi = read(
        make_job("MPIJob", "Launcher Worker",
                 std::regex_replace(container, std::regex("pytorch"), "mpi") + member + "}]}}}}"));
    CHECK_FALSE(validate_create(framework_of("MPIJob"), mpi).errors.empty());
    CHECK(validate_stored(framework_of("MPIJob"), mpi, {}).errors.empty());
  }
  CHECK(admit(make_job("PyTorchJob", "Worker", container + "args: [" + text.substr(1) + "]}]}}}}"))
            .is_allowed);
}

TEST_CASE("nprocPerNode: a number of processes that no machine has") {
  for (const auto& [text, is_allowed] : std::vector<std::pair<const char*, bool>>{
           {"4194304", true}, {"4194305", false}, {"9223372036854775807", false}}) {
    const auto answer =
        admit(make_job("PyTorchJob", "Master Worker", fmt::format("nprocPerNode: '{}'", text)));
    INFO(text << answer.message);
    CHECK(answer.is_allowed == is_allowed);
  }
  const V1Job stored =
      read(make_job("PyTorchJob", "Master Worker*3", "nprocPerNode: '9223372036854775807'"));
  int pods = 0;
  for (const Json& child : all_children(framework_of("PyTorchJob"), stored, Settings())) {
    if (child.get_string("kind") != "Pod") continue;
    CHECK(variable(child, "WORLD_SIZE") == "2147483647");
    ++pods;
  }
  CHECK(pods == 4);
}

namespace {

// A job of a kind, with random numbers everywhere: small, near a limit of int32, or beyond.
Json job_of_numbers(const Framework& framework, std::mt19937& random,
                    std::vector<std::int64_t>& drawn) {
  const auto number = [&](std::int64_t most) {
    const std::int64_t value = random() % 2   ? static_cast<std::int64_t>(random() % 20)
                               : random() % 2 ? most - static_cast<std::int64_t>(random() % 3)
                                              : static_cast<std::int64_t>(random()) % most;
    drawn.push_back(value);
    return value;
  };
  constexpr std::int64_t k32 = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t k64 = std::numeric_limits<std::int64_t>::max();
  Json job = make_job(framework.resource.kind, "");
  Json& spec = job["spec"];
  for (const std::string_view role : framework.roles) {
    if (random() % 4 == 0 && role != "Launcher") continue;
    spec[framework.replica_specs].set(
        role, yaml(fmt::format("{{replicas: {}, template: {{spec: {{containers: [{{name: {}, "
                               "image: i, ports: [{{name: {}, containerPort: {}}}], resources: "
                               "{{requests: {{cpu: '{}'}}}}}}]}}}}}}",
                               random() % 2 ? number(k32) : number(4),
                               framework.container.empty() ? "mpi" : framework.container,
                               framework.port_name.empty() ? "x" : framework.port_name, number(k64),
                               number(k64))));
  }
  spec.set("runPolicy",
           yaml(fmt::format("{{ttlSecondsAfterFinished: {}, activeDeadlineSeconds: {}, "
                            "backoffLimit: {}, schedulingPolicy: {{minAvailable: {}, "
                            "scheduleTimeoutSeconds: {}}}}}",
                            number(k32), number(k64), number(k32), number(k32), number(k32))));
  if (random() % 2) spec["runPolicy"]["schedulingPolicy"].erase("minAvailable");
  if (framework.singular == "pytorchjob") {
    if (random() % 2) spec.set("nprocPerNode", std::to_string(number(k64)));
    if (random() % 2)
      spec.set("elasticPolicy",
               yaml(fmt::format("{{minReplicas: {}, maxReplicas: {}, rdzvPort: {}, nProcPerNode: "
                                "{}, maxRestarts: {}, metrics: []}}",
                                number(k32), number(k32), number(k32), number(k32), number(k32))));
  }
  if (framework.singular == "mpijob") spec.set("slotsPerWorker", number(k32));
  return job;
}

// Numbers of a text, each with the sign before it unless it is behind a letter ("p-worker-0").
void check_numbers(const Json& value, const std::string& path) {
  INFO(path);
  if (value.is_object())
    for (const auto& [name, member] : value.as_object()) check_numbers(member, path + "." + name);
  if (value.is_array())
    for (const Json& item : value.as_array()) check_numbers(item, path + "[]");
  if (value.is_int()) CHECK(value.as_int() >= 0);
  if (!value.is_string()) return;
  const std::string& text = value.as_string();
  INFO(text);
  for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 1)) {
    const bool is_number = at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9';
    const bool is_sign =
        at == 0 || text[at - 1] == ':' || text[at - 1] == '=' || text[at - 1] == ' ';
    CHECK_FALSE((is_number && is_sign));
  }
}

}  // namespace

TEST_CASE("whatever the numbers of a job are, none that is rendered is negative or wrapped") {
  std::mt19937 random(17);
  int rendered = 0;
  int sized = 0;
  for (const Framework* framework : frameworks())
    for (int run = 0; run < trainer::test::times(400); ++run) {
      std::vector<std::int64_t> drawn;
      const Json object = job_of_numbers(*framework, random, drawn);
      INFO(kube::print_json(object));
      const auto answer = admit(object);
      const V1Job job = read(object);
      Settings settings;
      settings.gang_scheduler = run % 2 ? "volcano" : "x";
      Int128 pods = 0;
      for (const auto& [role, spec] : with_defaults(*framework, job).spec.replicaSpecs)
        pods += spec.replicas.value_or(1);
      CHECK(static_cast<Int128>(total_replicas(with_defaults(*framework, job))) == pods);
      if (pods > 10'000) {
        CHECK(all_children(*framework, job, settings).empty());
        CHECK((!answer.is_allowed || !framework->has_webhook));
        continue;
      }
      if (pods > 100) continue;  // more pods show nothing further
      for (const Json& child : all_children(*framework, job, settings)) {
        check_numbers(child, child.get_string("kind") == "Pod" ? "Pod" : "");
        if (child.get_string("kind") != "Pod") continue;
        ++rendered;
        Int128 processes = 1;
        if (job.spec.nprocPerNode) processes = std::stoll(*job.spec.nprocPerNode);
        const Int128 size = std::clamp<Int128>(pods * std::max<Int128>(processes, 1), 1,
                                               std::numeric_limits<std::int32_t>::max());
        if (const std::string text = variable(child, "WORLD_SIZE"); !text.empty()) {
          CHECK(text == std::to_string(static_cast<std::int64_t>(size)));
          ++sized;
        }
      }
    }
  CHECK(rendered > trainer::test::times(1'000));
  CHECK(sized > trainer::test::times(100));
}
