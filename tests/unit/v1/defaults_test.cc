// Rows DF1 to DF22 of the acceptance checklist.
#include <fmt/format.h>

#include "runtimes/v1/policies.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

V1Job defaulted(std::string_view kind, std::string_view roles, std::string_view more = {}) {
  return with_defaults(framework_of(kind), read(make_job(kind, roles, more)));
}

// "replicas 1 OnFailure 9000/23456": ports of the first container.
std::string seen(const V1Job& job, std::string_view role) {
  const ReplicaSpec& spec = job.spec.replicaSpecs.at(std::string(role));
  std::string ports;
  for (const Json& port :
       spec.template_.get("spec").get_array("containers").front().get_array("ports"))
    ports += fmt::format("{}{} {}", ports.empty() ? "" : ", ", port.get_string("name"),
                         port.get_int("containerPort"));
  return fmt::format("{} {} {}", *spec.replicas, spec.restartPolicy, ports);
}

std::string elastic(std::string_view policy, std::string_view kind = "PyTorchJob") {
  const V1Job job = defaulted(kind, "Worker*3", fmt::format("elasticPolicy: {}", policy));
  return fmt::format("{}:{}", *job.spec.elasticPolicy->minReplicas,
                     *job.spec.elasticPolicy->maxReplicas);
}

}  // namespace

TEST_CASE("DF1: roles in any case become canonical") {
  for (const char* role : {"PS", "Worker", "Chief", "Master", "Evaluator"}) {
    const V1Job job = defaulted("TFJob", trainer::to_lower(role));
    CHECK(job.spec.replicaSpecs.size() == 1);
    CHECK(job.spec.replicaSpecs.count(role) == 1);
  }
  CHECK(defaulted("TFJob", "other").spec.replicaSpecs.count("other") == 1);
}

TEST_CASE("DF2 to DF5, DF7 to DF11: replicas, restart policies and ports") {
  struct Row {
    const char* name;
    const char* kind;
    const char* extra;  // more lines of the role
    const char* expected;
  };
  for (const Row& row : {
           Row{"DF2", "TFJob", "{replicas: null}", "1 Never tfjob-port 2222"},
           Row{"DF3", "TFJob", "{replicas: 3}", "3 Never tfjob-port 2222"},
           Row{"DF4", "TFJob",
               "{template: {spec: {containers: [{name: tensorflow, image: i, ports: "
               "[{name: tfjob-port, containerPort: 7}]}]}}}",
               "1 Never tfjob-port 7"},
           Row{"DF5", "TFJob",
               "{template: {spec: {containers: [{name: tensorflow, image: i, ports: "
               "[{name: http, containerPort: 80}]}]}}}",
               "1 Never http 80, tfjob-port 2222"},
           Row{"DF7", "XGBoostJob", "{replicas: null}", "1 Never xgboostjob-port 9999"},
           Row{"DF8", "XGBoostJob", "{restartPolicy: Always}", "1 Always xgboostjob-port 9999"},
           Row{"DF9", "XGBoostJob", "{replicas: 2}", "2 Never xgboostjob-port 9999"},
           Row{"DF10", "XGBoostJob",
               "{template: {spec: {containers: [{name: xgboost, image: i, ports: [{name: "
               "xgboostjob-port, containerPort: 9999}]}]}}}",
               "1 Never xgboostjob-port 9999"},
           Row{"DF11", "XGBoostJob",
               "{template: {spec: {containers: [{name: xgboost, image: i, ports: [{name: "
               "xgboostjob-port, containerPort: 1234}]}]}}}",
               "1 Never xgboostjob-port 1234"},
           Row{"other", "PyTorchJob", "{}", "1 OnFailure pytorchjob-port 23456"},
           Row{"other", "PaddleJob", "{}", "1 OnFailure master 36543"},
           Row{"other", "JAXJob", "{}", "1 Never jaxjob-port 6666"},
       }) {
    INFO(row.name << " " << row.kind << " " << row.extra);
    const V1Job job =
        defaulted(row.kind, "Worker", fmt::format("roles: {{Worker: {}}}", row.extra));
    CHECK(seen(job, "Worker") == row.expected);
  }
}

TEST_CASE("DF6, DF7, DF12, DF14: cleanPodPolicy") {
  for (const auto& [more, expected] : std::vector<std::pair<const char*, const char*>>{
           {"", "None"},
           {"runPolicy: {cleanPodPolicy: All}", "All"},
           {"cleanPodPolicy: All", "All"},
           {"{cleanPodPolicy: All, runPolicy: {cleanPodPolicy: Running}}", "Running"}})
    CHECK(clean_pod_policy(read(make_job("MPIJob", "Launcher", more)).spec) == expected);
}

TEST_CASE("DF13, DF15: an MPIJob has one launcher and no worker") {
  const V1Job job = defaulted("MPIJob", "Launcher Worker",
                              "roles: {Launcher: {replicas: null}, Worker: {replicas: null}}");
  CHECK(seen(job, "Launcher") == "1 Never ");
  CHECK(seen(job, "Worker") == "0 Never ");
}

TEST_CASE("DF16 to DF19: bounds of an elastic job") {
  CHECK(elastic("{}") == "3:3");
  CHECK(elastic("{minReplicas: 1, maxReplicas: 1}") == "1:1");
  CHECK(elastic("{minReplicas: 1, maxReplicas: 4}") == "1:4");
  CHECK(elastic("{maxReplicas: 4}") == "4:4");
  CHECK(elastic("{minReplicas: 2}") == "2:2");
  CHECK(elastic("{minReplicas: 2}", "PaddleJob") == "2:2");
}

TEST_CASE("DF20, DF21: nprocPerNode") {
  CHECK(defaulted("PyTorchJob", "Worker").spec.nprocPerNode == "auto");
  CHECK(defaulted("PyTorchJob", "Worker", "nprocPerNode: '4'").spec.nprocPerNode == "4");
  CHECK_FALSE(
      defaulted("PyTorchJob", "Worker", "elasticPolicy: {nProcPerNode: 2}").spec.nprocPerNode);
}

TEST_CASE("DF22: the pods with the label job-role=master") {
  const auto is_master = [](std::string_view kind, std::string_view roles, std::string_view role,
                            int index) {
    return framework_of(kind).is_master(read(make_job(kind, roles)), {role, index});
  };
  CHECK(is_master("TFJob", "Chief Worker", "Chief", 0));
  CHECK(is_master("TFJob", "Master Worker", "Master", 0));
  CHECK_FALSE(is_master("TFJob", "Chief Worker", "Worker", 0));
  CHECK_FALSE(is_master("TFJob", "PS Worker", "PS", 0));
  CHECK(is_master("TFJob", "PS Worker*2", "Worker", 0));
  CHECK_FALSE(is_master("TFJob", "PS Worker*2", "Worker", 1));
  CHECK(is_master("PyTorchJob", "Worker*2", "Worker", 0));
  CHECK_FALSE(is_master("PyTorchJob", "Master Worker", "Worker", 0));
  CHECK_FALSE(is_master("PaddleJob", "Worker", "Worker", 0));
}
