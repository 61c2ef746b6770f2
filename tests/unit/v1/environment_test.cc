// Users write variables in any order, and the controller may set any of them, too. No name is in a
// container twice. The result is that of the controller's variables behind the user's (which is
// upstream's order, and in a container the last entry of a name counts). A reference is resolved to
// the container's value.
#include "runtimes/v1/environment.hh"

#include <fmt/format.h>

#include <map>
#include <random>
#include <set>

#include "runtimes/admission/v1job.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

// Expands like the kubelet, by the variables before; an unknown name stays as it is written.
std::string expand(std::string_view text, const Values& known) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find(')');
    if (text.starts_with("$$")) {
      out += '$';
      text.remove_prefix(2);
    } else if (text.starts_with("$(") && end != std::string_view::npos) {
      const auto found = known.find(text.substr(2, end - 2));
      out += found == known.end() ? std::string(text.substr(0, end + 1)) : found->second;
      text.remove_prefix(end + 1);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

Values values_of(const Json::Array& env) {
  Values values;
  for (const Json& variable : env)
    values.insert_or_assign(std::string(variable.get_string("name")),
                            variable.find("valueFrom")
                                ? kube::print_json(variable.get("valueFrom"))
                                : expand(variable.get_string("value"), values));
  return values;
}

std::vector<Json> pods_of(const Json& job) {
  std::vector<Json> pods;
  for (Json& child : all_children(framework_of(job.get_string("kind")), read(job), Settings()))
    if (child.get_string("kind") == "Pod") pods.push_back(std::move(child));
  return pods;
}

const Json::Array& env_of(const Json& pod) {
  return pod.get("spec").get_array("containers").front().get_array("env");
}

struct Kind {
  const char* name;
  const char* roles;
  const char* more;
  std::set<std::string> of_user = {};  // the user's value counts
  std::string_view referring = {};     // its value refers to the user's A
};

const Kind kKinds[] = {
    {"PyTorchJob", "Master Worker*2", ""},
    {"PyTorchJob",
     "Worker*2",
     "elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvHost: $(A), rdzvId: i, maxRestarts: 3}",
     {},
     "PET_RDZV_ENDPOINT"},
    {"TFJob", "Chief PS Worker*2", ""},
    {"TFJob", "PS Worker*2", "enableDynamicWorker: true"},
    {"XGBoostJob", "Master Worker*2", ""},
    {"PaddleJob", "Worker*2", ""},
    {"PaddleJob", "Master Worker*2", ""},
    {"JAXJob", "Worker*2", ""},
    {"MPIJob", "Launcher Worker*2", "", {"I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC"}},
};

Json with_env(Json job, const Json::Array& env) {
  const Framework& framework = framework_of(job.get_string("kind"));
  for (auto& [role, spec] : job["spec"][framework.replica_specs].as_object())
    spec["template"]["spec"]["containers"].as_array().front().set("env", env);
  return job;
}

// A list of random names, each once; a value may refer to one before it.
Json::Array draw_env(const std::vector<std::string>& names, std::string_view referring,
                     std::mt19937& random) {
  std::vector<std::string> order;
  for (const std::string& name : names)
    if (random() % 2 == 0) order.push_back(name);
  std::shuffle(order.begin(), order.end(), random);
  Json::Array env;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::string value = fmt::format("user's {}", order[i]);
    if (i > 0 && random() % 2 == 0)
      if (const std::string& other = order[random() % i]; other != referring)
        value = fmt::format("$$(X) $({}) $(ABSENT)", other);
    env.push_back(Json::object({{"name", order[i]}, {"value", value}}));
  }
  return env;
}

}  // namespace

TEST_CASE("no variable is there twice, and each has the value that it has in upstream's pods") {
  std::mt19937 random(3);
  for (const Kind& kind : kKinds) {
    const Json plain = make_job(kind.name, kind.roles, kind.more);
    const std::vector<Json> without = pods_of(plain);
    std::set<std::string> names{"A", "B", "C"};
    for (const Json& pod : without)
      for (const Json& variable : env_of(pod)) names.emplace(variable.get_string("name"));
    CHECK(names.size() > 3);
    for (int run = 0; run < 300; ++run) {
      const Json::Array own = draw_env({names.begin(), names.end()}, kind.referring, random);
      const std::vector<Json> pods = pods_of(with_env(plain, own));
      REQUIRE(pods.size() == without.size());
      for (std::size_t i = 0; i < pods.size(); ++i) {
        const Json::Array& env = env_of(pods[i]);
        INFO(kind.name << " " << kube::print_json(own) << " -> " << kube::print_json(env));
        const Values values = values_of(env);
        CHECK(values.size() == env.size());
        Json::Array appended = own;
        std::set<std::string, std::less<>> generated;
        for (const Json& variable : env_of(without[i])) {
          const std::string name(variable.get_string("name"));
          if (kind.of_user.contains(name) && values_of(own).contains(name)) continue;
          appended.push_back(variable);
          generated.insert(name);
        }
        const Values wanted = values_of(appended);
        for (std::size_t at = own.size(); at < appended.size(); ++at) {
          const Json& variable = appended[at];
          const std::string name(variable.get_string("name"));
          const std::string_view raw = variable.get_string("value");
          INFO(name);
          REQUIRE(values.contains(name));
          // A value that refers to a variable that both set gets the controller's value of that
          // variable, too.
          if (name == kind.referring && raw.find("$(") == 0)
            CHECK(values.at(name) == expand(raw, values));
          else
            CHECK(values.at(name) == wanted.at(name));
        }
        for (const Json& variable : own)
          if (const std::string_view name = variable.get_string("name"); !generated.contains(name))
            CHECK(values.find(name)->second == expand(variable.get_string("value"), values));
      }
    }
  }
}

TEST_CASE("a user who sets what the controller sets sees where") {
  Json::Array own;
  own.push_back(Json::object({{"name", "OMPI_MCA_plm_rsh_agent"}, {"value", "mine"}}));
  own.push_back(Json::object({{"name", "PYTHONUNBUFFERED"}, {"value", "0"}}));
  own.push_back(Json::object({{"name", "RANK"}, {"value", "9"}}));
  trainer::AdmissionRequest request;
  request.operation = "CREATE";
  const std::string text =
      "spec.pytorchReplicaSpecs[Worker].template.spec.containers[0].env: PYTHONUNBUFFERED, RANK "
      "have no effect, because the controller sets them; leave them out";
  for (const char* replicas : {"Worker", "Worker*9000"}) {
    request.object = with_env(make_job("PyTorchJob", std::string("Master ") + replicas), own);
    const auto answer = trainer::validate_v1job(request, framework_of("PyTorchJob"));
    REQUIRE(answer.warnings.size() == 2);
    CHECK(answer.warnings[1] == text);
  }
  World world(with_env(make_job("PyTorchJob", "Master Worker"), own));
  CHECK(world.has_event("Warning SetPodTemplateEnvironment: " + text));
  // No webhook sees an MPIJob.
  World mpi(with_env(make_job("MPIJob", "Launcher Worker"), own));
  CHECK(mpi.has_event(
      "Warning SetPodTemplateEnvironment: spec.mpiReplicaSpecs[Launcher].template.spec.containers"
      "[0].env: OMPI_MCA_plm_rsh_agent has no effect, because the controller sets it; leave it "
      "out"));
}

TEST_CASE("what a user writes twice stays as it is") {
  Json::Array own;
  for (const char* value : {"1", "2"})
    own.push_back(Json::object({{"name", "A"}, {"value", value}}));
  const Json::Array env = env_of(pods_of(with_env(make_job("JAXJob", "Worker"), own)).front());
  CHECK(env[0] == own[0]);
  CHECK(env[1] == own[1]);
}
