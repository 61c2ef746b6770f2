#include "controller/cli/local_changes.hh"

#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

Json yaml(const std::string& text) {
  auto value = kube::parse_yaml(text);
  REQUIRE(value);
  return std::move(*value);
}

Json job(const std::string& trainer) {
  return yaml("{metadata: {name: j, namespace: ns}, spec: {runtimeRef: {name: r}, trainer: " +
              trainer + "}}");
}

// With these resources of the container `node`.
Json runtime(const std::string& resources = "{}") {
  return yaml(
      "{spec: {mlPolicy: {numNodes: 2}, template: {spec: {replicatedJobs: [{name: model, template: "
      "{spec: {template: {spec: {containers: [{name: model-initializer}]}}}}}, {name: node, "
      "template: "
      "{spec: {template: {spec: {containers: [{name: node, resources: " +
      resources + "}]}}}}}]}}}}");
}

const std::string kLaptop = "{cpu: '2', memory: 8Gi, pods: '110'}";
const std::string kWorkstation = "{cpu: '16', memory: 64Gi, nvidia.com/gpu: '4'}";

}  // namespace

TEST_CASE("a job is cut to the machine, and each cut is said") {
  struct Case {
    const char* what;
    std::string trainer;
    std::string runtime;
    std::string machine;
    std::string expected;  // spec.trainer
    std::vector<std::string> lines;
  };
  const Case cases[] = {
      {"fits",
       "{numNodes: 2, resourcesPerNode: {requests: {cpu: 250m, memory: 512Mi}}}",
       "{}",
       kLaptop,
       "{numNodes: 2, resourcesPerNode: {requests: {cpu: 250m, memory: 512Mi}}}",
       {}},
      {"says nothing of its size", "{command: [a]}", "{}", kLaptop, "{command: [a]}", {}},
      {"GPUs of a cluster on a laptop",
       "{numNodes: 16, numProcPerNode: 8, resourcesPerNode: {requests: {cpu: 32, memory: 200Gi, "
       "nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}}",
       "{}",
       kLaptop,
       "{numNodes: 2, numProcPerNode: 1, resourcesPerNode: {requests: {cpu: '1', memory: 4096Mi, "
       "nvidia.com/gpu: '0'}, limits: {nvidia.com/gpu: '0'}}}",
       {"nodes: 16 -> 2", "cpu per node: 32 -> 1", "memory per node: 204800Mi -> 4096Mi",
        "nvidia.com/gpu per node: 8 -> 0 (this machine has none)", "processes per node: 8 -> 1"}},
      {"each node keeps a GPU",
       "{numNodes: 4, numProcPerNode: 8, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}",
       "{}",
       kWorkstation,
       "{numNodes: 4, numProcPerNode: 1, resourcesPerNode: {limits: {nvidia.com/gpu: '1'}}}",
       {"nvidia.com/gpu per node: 8 -> 1", "processes per node: 8 -> 1"}},
      {"more nodes than GPUs",
       "{numNodes: 9, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}",
       "{}",
       kWorkstation,
       "{numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}",
       {"nodes: 9 -> 4"}},
      {"what the runtime asks for counts",
       "{}",
       "{limits: {nvidia.com/gpu: 2}}",
       kLaptop,
       "{resourcesPerNode: {limits: {nvidia.com/gpu: '0'}}}",
       {"nvidia.com/gpu per node: 2 -> 0 (this machine has none)"}},
      {"the job's amount replaces the runtime's",
       "{resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}",
       "{limits: {nvidia.com/gpu: 8}}",
       kWorkstation,
       "{resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}",
       {}},
      {"processes without GPUs are nobody's business",
       "{numProcPerNode: 8, resourcesPerNode: {requests: {cpu: 4}}}",
       "{}",
       kLaptop,
       "{numProcPerNode: 8, resourcesPerNode: {requests: {cpu: '1'}}}",
       {"cpu per node: 4 -> 1"}},
      {"less than a CPU for each node",
       "{numNodes: 3, resourcesPerNode: {requests: {cpu: 600m}}}",
       "{}",
       "{cpu: '1', memory: 1Gi}",
       "{numNodes: 1, resourcesPerNode: {requests: {cpu: 600m}}}",
       {"nodes: 3 -> 1"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Json changed = job(c.trainer);
    LocalChanges changes;
    changes.is_fitted = true;
    const auto lines = change_for_local(changed, runtime(c.runtime), yaml(c.machine), changes);
    CHECK(lines == c.lines);
    CHECK(kube::print_json(changed.get("spec").get("trainer")) ==
          kube::print_json(yaml(c.expected)));
  }
}

TEST_CASE("nodes and processes of the command line come before the machine") {
  Json changed = job("{numNodes: 64, numProcPerNode: 8, resourcesPerNode: {limits: {cpu: 2}}}");
  LocalChanges changes;
  changes.nodes = 3;
  changes.procs = 2;
  changes.is_fitted = true;
  const auto lines = change_for_local(changed, runtime(), yaml(kLaptop), changes);
  CHECK(lines == std::vector<std::string>{"numNodes: 3", "numProcPerNode: 2", "nodes: 3 -> 2",
                                          "cpu per node: 2 -> 1"});
}

TEST_CASE("a mount is a patch of the jobs that have a container `node`") {
  Json changed = job("{}");
  LocalChanges changes;
  changes.mounts = {{"/home/me/code", "/workspace"}};
  const auto lines = change_for_local(changed, runtime(), Json(), changes);
  CHECK(lines == std::vector<std::string>{"/workspace is /home/me/code"});
  CHECK(kube::print_json(changed.get("spec").get("runtimePatches")) ==
        kube::print_json(yaml(
            "[{manager: trainer.kubeflow.org/local, trainingRuntimeSpec: {template: {spec: "
            "{replicatedJobs: [{name: node, template: {spec: {template: {spec: {volumes: [{name: "
            "local-mount-0, hostPath: {path: /home/me/code}}], containers: [{name: node, "
            "volumeMounts: [{name: local-mount-0, mountPath: /workspace}]}]}}}}}]}}}}]")));
}

TEST_CASE("the caller's PATH is for jobs that say none") {
  LocalChanges changes;
  changes.path = "/venv/bin:/usr/bin";
  Json without = job("{env: [{name: A, value: b}]}");
  CHECK(change_for_local(without, Json(), Json(), changes).empty());
  CHECK(without.get_path({"spec", "trainer"}).get_array("env").size() == 2);
  const Json before = job("{env: [{name: PATH, value: /mine}]}");
  Json with = before;
  change_for_local(with, Json(), Json(), changes);
  CHECK(with == before);
}

TEST_CASE("a mount has a directory and a path") {
  struct Case {
    const char* text;
    const char* source;  // nullptr: refused
    const char* target;
  };
  const Case cases[] = {
      {".:/workspace", "/here", "/workspace"},
      {"code:/workspace", "/here/code", "/workspace"},
      {"/data:/mnt/data", "/data", "/mnt/data"},
      {"/a:b:/c", "/a:b", "/c"},
      {"code", nullptr, ""},
      {":/workspace", nullptr, ""},
      {"code:workspace", nullptr, ""},
      {"code:/", nullptr, ""},
      {"code://", nullptr, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto mount = parse_mount(c.text, "/here");
    CHECK(mount.has_value() == (c.source != nullptr));
    if (!mount || c.source == nullptr) continue;
    CHECK(mount->source == c.source);
    CHECK(mount->target == c.target);
  }
}
