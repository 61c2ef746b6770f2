// A job brings its files by annotation: an init container unpacks them.
#include <string>

#include "kube/model/json_text.hh"
#include "runtimes/plugins/code/watch_script.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

const std::string kCode = "trainer.kubeflow.org/code";
const std::string kWatch = "trainer.kubeflow.org/code-watch";
const std::string kDirectory = "trainer.kubeflow.org/working-dir";

TrainJob coded(const std::string& code, const std::string& directory = "") {
  TrainJob job = job_with(
      "{trainer: {image: mine:1, command: [torchrun, train.py], resourcesPerNode: {requests: {cpu: "
      "'2', "
      "memory: 1Gi}, limits: {nvidia.com/gpu: 1}}}}");
  if (!code.empty()) job.metadata.annotations[kCode] = code;
  if (!directory.empty()) job.metadata.annotations[kDirectory] = directory;
  return job;
}

const kube::Json& pod_spec(const Built& result, const char* job) {
  return pod_in(result, job).get("spec");
}

TEST_CASE("an init container of the trainer's image unpacks the code", "[code]") {
  const Built result = built(coded("j-code-0,j-code-1"), torch_runtime());
  const kube::Json& container = container_in(result, "node");
  CHECK(container.get_string("workingDir") == "/workspace/code");
  CHECK(strings(container.get_array("command")) == Words{"torchrun", "train.py"});
  const auto& init = pod_spec(result, "node").get_array("initContainers");
  REQUIRE(init.size() == 1);
  CHECK(init[0].get_string("name") == "unpack-code");
  CHECK(init[0].get_string("image") == "mine:1");
  CHECK(init[0].get_array("command").size() == 4);
  CHECK(init[0].get_array("command")[3] == kube::Json("/workspace/code"));
  // The pod asks for no more than without it.
  CHECK(kube::print_json(init[0].get("resources")) == R"({"requests":{"cpu":"2","memory":"1Gi"}})");
  const kube::Json volumes(pod_spec(result, "node").get_array("volumes"));
  CHECK_THAT(
      kube::print_json(volumes),
      Catch::Contains(R"({"configMap":{"name":"j-code-0"}},{"configMap":{"name":"j-code-1"}})"));
}

TEST_CASE("a working directory needs no code", "[code]") {
  const Built result = built(coded("", "/src"), torch_runtime());
  CHECK(container_in(result, "node").get_string("workingDir") == "/src");
  CHECK(pod_spec(result, "node").find("initContainers") == nullptr);
  const Built both = built(coded("c", "/src"), torch_runtime());
  CHECK(pod_spec(both, "node").get_array("initContainers")[0].get_array("command")[3] ==
        kube::Json("/src"));
}

TEST_CASE("under MPI launcher and workers have the code", "[code]") {
  const Built result = built(coded("c"), mpi_runtime());
  for (const char* job : {"launcher", "node"}) {
    INFO(job);
    CHECK(container_in(result, job).get_string("workingDir") == "/workspace/code");
    CHECK(pod_spec(result, job).get_array("initContainers").size() == 1);
  }
}

TEST_CASE("code that is watched makes the command a child", "[code]") {
  TrainJob job = coded("c");
  job.metadata.annotations[kWatch] = "true";
  const Built result = built(job, torch_runtime());
  const auto& command = container_in(result, "node").get_array("command");
  REQUIRE(command.size() == 6);
  CHECK(command[0] == kube::Json("sh"));
  CHECK(command[2] == kube::Json(pipeline::watch_script()));
  CHECK(command[3] == kube::Json("/workspace/code"));
  CHECK(command[4] == kube::Json("torchrun"));
  CHECK_THAT(std::string(pipeline::watch_script()),
             kube::test::contains(pipeline::kWatchDirectory) &&
                 kube::test::contains(pipeline::kRoundVariable));
  // Without code there is nothing to watch, and mpirun starts the processes of all pods.
  job.metadata.annotations.erase(kCode);
  CHECK(container_in(built(job, torch_runtime()), "node").get_array("command").size() == 2);
  job.metadata.annotations[kCode] = "c";
  CHECK(container_in(built(job, mpi_runtime()), "launcher").get_array("command").size() != 6);
  job.metadata.annotations[kWatch] = "yes";
  CHECK_FALSE(validate_trainjob(job, nullptr, torch_runtime()).empty());
}

TEST_CASE("code that nothing can begin again has a warning", "[code]") {
  TrainJob job = coded("c");
  job.metadata.annotations[kWatch] = "true";
  CHECK(warn_trainjob(job, torch_runtime()).empty());
  // The command of the runtime counts, and an image's own cannot be begun again.
  job.spec.trainer->command.reset();
  const Runtime own = runtime_with("{torch: {}}", R"([{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
    spec: {template: {spec: {containers: [
      {name: node, image: "img:1", command: [torchrun, train.py]}]}}}}}])");
  CHECK(warn_trainjob(job, own).empty());
  CHECK_THAT(warn_trainjob(job, torch_runtime()).at(0),
             kube::test::contains("the training has no command"));
  job.metadata.annotations.erase(kCode);
  CHECK_THAT(warn_trainjob(job, torch_runtime()).at(0),
             kube::test::contains("there is no code to watch"));
}

TEST_CASE("wrong annotations are refused", "[code]") {
  struct Row {
    const char* code;
    const char* directory;
    const char* error;  // "": it is right
  };
  const Row rows[] = {
      {"a,b", "/x", ""},
      {"a", "/x/..y", ""},
      {"A", "", "must be names of ConfigMaps with commas between them"},
      {"a,,b", "", "must be names of ConfigMaps with commas between them"},
      {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u", "", "names 21 ConfigMaps, and 20 is the limit"},
      {"", "x", "must be an absolute path below /"},
      {"", "/", "must be an absolute path below /"},
      {"", "/x/../y", "must be an absolute path below /"},
      {"", "/x:y", "must be an absolute path below /"},
      {"a", "/dev/shm", "where volume \"m\" is mounted"},
      {"", "/dev/shm", ""},
  };
  const Runtime runtime = torch_runtime(
      "{template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: "
      "{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: "
      "{containers: [{name: node, image: i, volumeMounts: [{name: m, mountPath: /dev/shm}]}], "
      "volumes: [{name: m, emptyDir: {}}]}}}}}]}}}");
  for (const Row& row : rows) {
    INFO(row.code << " in " << row.directory);
    const auto errors = validate_trainjob(coded(row.code, row.directory), nullptr, runtime);
    CHECK(errors.empty() == (*row.error == '\0'));
    if (*row.error != '\0') CHECK_THAT(kube::to_string(errors), kube::test::contains(row.error));
  }
}

}  // namespace
}  // namespace trainer::test
