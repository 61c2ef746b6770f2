// These are recorded statuses, events and lines of output, with the answers of `trainer why`. Those
// with a place in docs/troubleshooting.md are printed there, by this test with ACCEPT=1.
#include "controller/cli/symptoms.hh"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "api/api.hh"
#include "controller/cli/why_report.hh"
#include "controller/kinds/jobset/command_hooks.hh"
#include "controller/kinds/trainjob/command_hooks.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"

using namespace trainer;
using kube::Json;
using kube::Time;

namespace {

const Time kNow = *Time::parse("2026-08-20T10:00:00Z");

struct Row {
  std::string name;   // the name of the symptom, or "" for none
  std::string cause;  // the text of the first line
  bool is_in_document = false;
  std::string status;  // the status of the TrainJob
  std::string pods = "[]";
  std::string events = "[]";
  std::vector<PodOutput> outputs;
};

Json yaml(const std::string& text) {
  auto value = kube::parse_yaml(text);
  if (!value) throw std::logic_error(value.error().message + text);
  return std::move(*value);
}

// A pod of the job, node `rank` of four.
std::string pod(int rank, const std::string& status, const std::string& spec = "nodeName: m1") {
  const std::string number = std::to_string(rank);
  return "{metadata: {name: llama-node-0-" + number +
         "-x, labels: {jobset.sigs.k8s.io/replicatedjob-name: node, "
         "batch.kubernetes.io/job-completion-index: '" +
         number + "'}}, spec: {" + spec + "}, status: {" + status + "}}";
}

// One whose image is pulled.
std::string created(int rank, const std::string& time) {
  std::string made = pod(rank, "phase: Pending");
  return made.insert(made.find("name: "), "creationTimestamp: '" + time + "', ");
}

std::string container(const std::string& more, const std::string& digest = "") {
  return "containerStatuses: [{name: node, image: 'example.com/llama:1'" +
         (digest.empty() ? "" : ", imageID: 'example.com/llama@sha256:" + digest + "'") + ", " +
         more + "}]";
}

std::string waits(const std::string& reason, const std::string& message) {
  return "phase: Pending, " +
         container("state: {waiting: {reason: " + reason + ", message: '" + message + "'}}");
}

std::string unscheduled(const std::string& message) {
  return "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: "
         "Unschedulable, message: '" +
         message + "'}]";
}

std::string runs(const std::string& digest = "") {
  return "phase: Running, " + container("state: {running: {}}", digest);
}

std::string finished(const std::string& time) {
  return "phase: Succeeded, " +
         container("state: {terminated: {exitCode: 0, finishedAt: '" + time + "'}}");
}

std::string failed(const std::string& reason) {
  return "phase: Failed, " +
         container("state: {terminated: {exitCode: 137, reason: " + reason + "}}");
}

std::string event(const std::string& kind, const std::string& name, const std::string& reason,
                  const std::string& message) {
  return "{type: Warning, reason: " + reason + ", message: '" + message +
         "', lastTimestamp: '2026-08-20T09:55:00Z', involvedObject: {kind: " + kind +
         ", name: " + name + "}}";
}

const std::string kNoQuota =
    event("Job", "llama-node-0", "FailedCreate", "exceeded quota: team, requested");
const std::string kRunning =
    "{phase: Running, reason: NodesReady, message: 4 of 4 nodes are ready}";
const std::string kFailed =
    "{phase: Failed, reason: FailedJobs, message: jobset failed due to one or more job failures, "
    "conditions: [{type: Failed, status: 'True', reason: FailedJobs}]}";
const std::string kStarting =
    "{phase: Starting, reason: StartingContainers, message: 0 of 1 nodes are running}";
const std::string kPending = "{phase: Pending, reason: VolumeMissing, message: 4 pods wait}";
const std::string kSdk =
    "containers: [{name: node, command: [bash, -c, \"read -r -d '' SCRIPT << EOM\"]}]";

std::vector<PodOutput> prints(int rank, const std::string& text) {
  return {{"llama-node-0-" + std::to_string(rank) + "-x", "step 100\n" + text + "\n"}};
}

// A node that failed, with its last lines.
Row row_of_line(std::string name, std::string cause, bool is_in_document, const std::string& line,
                const std::string& status = kFailed) {
  return {std::move(name), std::move(cause), is_in_document, status, "[]", "[]", prints(1, line)};
}

std::vector<Row> rows_of_statuses() {
  const std::string missing =
      "rpc error: code = NotFound desc = failed to pull and unpack image \"example.com/llama:1\": "
      "example.com/llama:1: not found";
  const std::string pulls = "{phase: Starting, reason: ImagePullFailed, message: 1 pod waits}";
  return {
      {"image-pull", "image example.com/llama:1 cannot be pulled: the registry has no such image",
       true, pulls, "[" + pod(0, waits("ErrImagePull", missing)) + "]"},
      {"image-pull", "the registry refuses access", false, pulls,
       "[" + pod(0, waits("ImagePullBackOff", "Back-off pulling image")) + "]",
       "[" +
           event("Pod", "llama-node-0-0-x", "Failed",
                 "Failed to pull image: code = Unknown desc = 401 Unauthorized") +
           "]"},
      {"image-pull", "the registry limits pulls", false, pulls,
       "[" + pod(0, waits("ErrImagePull", "429 Too Many Requests, toomanyrequests: limit")) + "]"},
      {"image-pull", "the registry cannot be reached", false, pulls,
       "[" + pod(0, waits("ErrImagePull", "desc = dial tcp: lookup x: no such host")) + "]"},
      // the digest has both numbers of refused access
      {"image-pull", "the registry has no such image or tag", false, pulls,
       "[" +
           pod(0,
               waits("ErrImagePull", "desc = failed to resolve r/i@sha256:a401b403: not found")) +
           "]"},
      {"image-pull", "it is not built for the machine's architecture", false, pulls,
       "[" + pod(0, waits("ErrImagePull", "desc = no match for platform in manifest: not found")) +
           "]"},
      {"image-pull", "its name is not valid", false, pulls,
       "[" +
           pod(0, waits("InvalidImageName",
                        "Failed to apply default image tag: invalid reference format")) +
           "]"},
      {"image-pull", "its pull policy is Never", false, pulls,
       "[" +
           pod(0, waits("ErrImageNeverPull",
                        "Container image x is not present with pull policy of Never")) +
           "]"},
      {"image-pull", "the registry's certificate is not trusted", false, pulls,
       "[" +
           pod(0, waits("ErrImagePull",
                        "desc = tls: x509: certificate signed by unknown "
                        "authority")) +
           "]"},
      // Events of the start of a job that runs, or has failed since.
      {"", "", false, kRunning, "[" + pod(0, runs()) + "]",
       "[" + event("Job", "llama-node-0", "FailedCreate", "exceeded quota: team, requested") + "]"},
      {"", "", false, kFailed, "[" + pod(0, failed("Error")) + "]",
       "[" +
           event("Pod", "llama-node-0-0-x", "FailedScheduling",
                 "pod has unbound immediate PersistentVolumeClaims") +
           "]"},
      // The event may also be about steps that are done: a pod was created since, and has a
      // machine.
      {"", "", false, kStarting, "[" + created(0, "2026-08-20T09:55:01Z") + "]",
       "[" + kNoQuota + "," +
           event("Pod", "llama-node-0-0-x", "FailedScheduling",
                 "pod has unbound immediate PersistentVolumeClaims") +
           "]"},
      {"quota", "ResourceQuota team is used up", false, kStarting,
       "[" + created(0, "2026-08-20T09:54:59Z") + "]", "[" + kNoQuota + "]"},
      {"quota", "ResourceQuota team is used up", true,
       "{phase: Pending, reason: QuotaExceeded, message: 4 pods wait}", "[]",
       "[" +
           event("Job", "llama-node-0", "FailedCreate",
                 "pods \"llama-node-0-0-x\" is forbidden: exceeded quota: team, requested: "
                 "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=24, limited: "
                 "requests.nvidia.com/gpu=24") +
           "]"},
      {"unbound-claim", "claim dataset is not bound", true, kPending,
       "[" +
           pod(0,
               unscheduled("0/3 nodes are available: pod has unbound immediate "
                           "PersistentVolumeClaims."),
               "volumes: [{name: data, persistentVolumeClaim: {claimName: dataset}}]") +
           "]",
       "[" +
           event("PersistentVolumeClaim", "dataset", "ProvisioningFailed",
                 "storageclass.storage.k8s.io \"fast\" not found") +
           "]"},
      {"unbound-claim", "a claim does not exist", false, kPending,
       "[" + pod(0, unscheduled("persistentvolumeclaim \"data\" not found")) + "]"},
      // The scheduler writes this if the StorageClass does not exist.
      {"unbound-claim", "claim data is not bound", false, kPending,
       "[" +
           pod(0,
               unscheduled("0/1 nodes are available: pod has unbound immediate "
                           "PersistentVolumeClaims. not found"),
               "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]") +
           "]"},
      {"out-of-memory",
       "out of memory: container node of pod llama-node-0-2-x reached its limit of 16Gi", true,
       kFailed,
       "[" +
           pod(2, failed("OOMKilled"),
               "nodeName: m1, containers: [{name: node, resources: {limits: {memory: 16Gi}}}]") +
           "]"},
      {"out-of-memory", "has no limit, its machine had no more", false, kFailed,
       "[" + pod(2, failed("OOMKilled")) + "]"},
      {"out-of-memory", "out of memory: the machine of pod llama-node-0-1-x had no more", false,
       kFailed,
       "[" +
           pod(1,
               "phase: Failed, reason: Evicted, message: 'The node was low on resource: "
               "memory. Container node was using 30Gi, request is 1Gi.'") +
           "]"},
      {"out-of-memory", "out of memory: a container reached its limit", false,
       "{phase: Failed, conditions: [{type: Failed, status: 'True'}], firstFailure: {pod: p, "
       "reason: OOMKilled, exitCode: 137}}"},
      {"shared-memory", "shared memory is used up", false, kFailed,
       "[" +
           pod(2, "phase: Failed, " +
                      container("state: {terminated: {exitCode: 135, reason: Error}}")) +
           "]"},
      {"different-images", "pods run different images under the name example.com/llama:1", true,
       kRunning,
       "[" + pod(0, runs("1111111111111111")) + ", " + pod(1, runs("1111111111111111")) + ", " +
           pod(2, runs("2222222222222222")) + "]"},
      {"runs-on", "3 of 4 finished, rank 2 runs on", true, kRunning,
       "[" + pod(0, finished("2026-08-20T09:40:00Z")) + ", " +
           pod(1, finished("2026-08-20T09:41:00Z")) + ", " + pod(2, runs()) + ", " +
           pod(3, finished("2026-08-20T09:41:00Z")) + "]"},
      {"", "", false, kRunning,
       "[" + pod(0, finished("2026-08-20T09:59:50Z")) + ", " + pod(1, runs()) + "]"},
      {"", "", false, kRunning, "[" + pod(0, runs("11")) + ", " + pod(1, runs("11")) + "]"},
      {"", "", false, "{phase: Complete, conditions: [{type: Complete, status: 'True'}]}",
       "[" + pod(0, failed("OOMKilled")) + "]"},
  };
}

// Rank 1 has the cause; it and the rank that waits for it have failed within a second.
Row script_error() {
  Row row = row_of_line("script-error", "the script fails: ValueError: the rate is negative", true,
                        "Traceback (most recent call last):\n  File \"train.py\", line 3\n"
                        "ValueError: the rate is negative");
  row.outputs.insert(row.outputs.begin(),
                     prints(0,
                            "Traceback (most recent call last):\n  File \"train.py\", line 9\n"
                            "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by "
                            "peer [10.0.0.2]:41234")[0]);
  return row;
}

std::vector<Row> rows_of_lines() {
  Row argument = row_of_line("sdk-function", "gets other arguments than it takes", false,
                             "TypeError: train() missing 1 required positional argument: 'lr'");
  argument.pods =
      "[" +
      pod(1, "phase: Failed, " + container("state: {terminated: {exitCode: 1, reason: Error}}"),
          kSdk) +
      "]";
  Row name = row_of_line("sdk-function", "the training function uses a name from outside of it",
                         true, "NameError: name 'torch' is not defined");
  name.pods = argument.pods;
  Row kept = row_of_line("nccl-timeout", "NCCL timed out waiting for another rank", false, "");
  kept.outputs.clear();
  kept.status =
      "{phase: Failed, conditions: [{type: Failed, status: 'True'}], firstFailure: {pod: p, "
      "message: 'torch.distributed.DistBackendError: ncclRemoteError: remote process exited'}}";
  return {
      row_of_line("shared-memory", "shared memory is used up", true,
                  "RuntimeError: DataLoader worker (pid 73) is killed by signal: Bus error. It is "
                  "possible that dataloader's workers are out of shared memory."),
      row_of_line("gpu-memory", "the GPU's memory is used up", true,
                  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
                  "has a total capacity of 79.15 GiB of which 1.06 GiB is free."),
      row_of_line("missing-package", "the image lacks a Python package", true,
                  "ModuleNotFoundError: No module named 'datasets'"),
      row_of_line("missing-package", "pip finds no such package", false,
                  "ERROR: No matching distribution found for transformer==9"),
      name,
      argument,
      row_of_line("", "", false, "NameError: name 'torch' is not defined"),
      row_of_line("network-interface",
                  "the network interface that NCCL or Gloo should use does not exist", true,
                  "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. "
                  "Unable to find address for: eth1"),
      row_of_line("network-interface", "does not exist", false,
                  "m1:7:7 [0] NCCL WARN Bootstrap : no socket interface found"),
      row_of_line("no-peer", "a host name cannot be resolved", false,
                  "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>"),
      row_of_line("no-peer", "the name of a node cannot be resolved", true,
                  "[W socket.cpp:697] [c10d] The IPv6 network addresses of "
                  "(llama-node-0-0.llama, 29500) cannot be retrieved (gai error: -2 - Name or "
                  "service not known).",
                  kRunning),
      row_of_line("no-peer", "the nodes do not reach each other", false,
                  "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for "
                  "clients. 1/4 clients joined."),
      row_of_line("no-peer", "the nodes do not reach each other", false,
                  "torch.distributed.DistNetworkError: The client socket has timed out after "
                  "60000ms while trying to connect to (llama-node-0-0.llama, 29500)."),
      row_of_line("no-peer", "the nodes do not reach each other", false,
                  "m1:12:99 [3] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to "
                  "10.0.0.2<45763> failed : Connection timed out"),
      row_of_line("no-peer", "the nodes do not reach each other", false,
                  "RuntimeError: Socket Timeout"),
      row_of_line("mpi-slots", "mpirun has fewer slots than processes", true,
                  "A \"slot\" is the PRRTE term for an allocatable unit where we can"),
      row_of_line("mpi-slots", "mpirun has fewer slots than processes", false,
                  "A \"slot\" is the Open MPI term for an allocatable unit where we can"),
      row_of_line("file-locks", "a file lock fails on a network file system", true,
                  "OSError: [Errno 37] No locks available"),
      row_of_line("nccl-timeout", "NCCL timed out waiting for another rank", true,
                  "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1204, "
                  "OpType=ALLREDUCE, NumelIn=25557032, Timeout(ms)=600000) ran for 600012 "
                  "milliseconds before timing out."),
      kept,
      row_of_line("gloo-timeout", "Gloo timed out waiting for another rank", true,
                  "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
                  "1800000ms for recv operation to complete"),
      row_of_line("gloo-timeout", "Gloo timed out waiting for another rank", false,
                  "RuntimeError: [gloo/transport/tcp/pair.cc:598] Read error [10.0.0.2]:41234: "
                  "Connection reset by peer"),
      row_of_line("shared-memory", "shared memory is used up", false,
                  "RuntimeError: unable to write to file </torch_41_3284>"),
      script_error(),
      row_of_line("", "", false, "loss 0.31, no error", kRunning),
  };
}

WhyReport report_of(const Row& row) {
  Json object = yaml(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: llama, "
      "namespace: team-a}, spec: {runtimeRef: {name: r}}}");
  object.set("status", yaml(row.status));
  const auto job = read_trainjob(object);
  if (!job) throw std::logic_error(kube::to_string(job.error()));
  WhyFacts facts;
  const Json pods = yaml(row.pods);
  const Json events = yaml(row.events);
  facts.pods.assign(pods.as_array().begin(), pods.as_array().end());
  facts.events.assign(events.as_array().begin(), events.as_array().end());
  facts.outputs = row.outputs;
  facts.read_place = read_jobset_place;
  return why(kTrainJobs, job->metadata.key(), trainjob_state(*job, "trainer"), facts, kNow);
}

const std::string kDocument = test::source_root() + "/docs/troubleshooting.md";

std::string read_document() {
  std::ostringstream text;
  text << std::ifstream(kDocument).rdbuf();
  return std::move(text).str();
}

}  // namespace

TEST_CASE("the first line names the cause") {
  std::vector<Row> rows = rows_of_statuses();
  for (Row& row : rows_of_lines()) rows.push_back(std::move(row));
  for (const Row& row : rows) {
    CAPTURE(row.name, row.cause, row.status, row.pods);
    const WhyReport report = report_of(row);
    const std::string text = report.to_text();
    CAPTURE(text);
    CHECK(row.cause.empty() == row.name.empty());
    CHECK(report.cause.empty() == row.name.empty());
    if (row.name.empty()) continue;
    CHECK_THAT(text.substr(0, text.find('\n')), kube::test::contains(row.cause));
    CHECK_FALSE(report.next_step.empty());
  }
}

TEST_CASE("errors of processes that were replaced are no cause while the job makes steps") {
  struct Case {
    const char* more;
    bool is_cause;
  };
  for (const Case& each : {Case{"", true},
                           {"goodput: {current: productive}", true},
                           {"processRestarts: 1", true},
                           {"processRestarts: 1, goodput: {current: starting}", true},
                           {"processRestarts: 1, goodput: {current: productive}", false},
                           {"elastic: {minNodes: 1}, goodput: {current: recomputed}", false}}) {
    CAPTURE(each.more);
    const std::string status = std::string("{phase: Running, ") + each.more + "}";
    const Row row = row_of_line("gloo", "", false,
                                "RuntimeError: Connection closed by peer [10.0.0.1]", status);
    CHECK(report_of(row).cause.empty() != each.is_cause);
  }
}

TEST_CASE("a lack of slots is explained for the version of OpenMPI that says so") {
  const auto step = [](const std::string& term) {
    return report_of(row_of_line("mpi-slots", "", false,
                                 "A \"slot\" is the " + term + " term for an allocatable unit"))
        .next_step;
  };
  CHECK_THAT(step("PRRTE"), kube::test::contains("PRTE_MCA_prte_default_hostfile"));
  CHECK(step("Open MPI").find("hostfile") == std::string::npos);
}

TEST_CASE("what follows from the cause is evidence") {
  const std::vector<Row> rows = rows_of_statuses();
  Row row = *std::find_if(rows.begin(), rows.end(),
                          [](const Row& each) { return each.name == "out-of-memory"; });
  row.outputs = prints(1, "torch.distributed.DistBackendError: ncclRemoteError");
  const WhyReport report = report_of(row);
  CHECK(report.cause.starts_with("out of memory"));
  CHECK(std::count(report.evidence.begin(), report.evidence.end(),
                   "also: NCCL timed out waiting for another rank") == 1);
}

TEST_CASE("the error of a script is found before what torchrun adds") {
  Row row = script_error();
  row.outputs[1].text =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 3\n"
      "[rank1]: ValueError: the rate is negative\nE1120 failed (exitcode: 1)\n"
      "Traceback (most recent call last):\n  File \"/bin/torchrun\", line 8\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\n";
  CHECK(report_of(row).cause == "the script fails: ValueError: the rate is negative");
  // The others cannot connect to it any more.
  const std::string waits = row.outputs[0].text;
  row.outputs[0].text = "torch.distributed.DistNetworkError: The client socket has timed out\n";
  CHECK(report_of(row).cause == "the script fails: ValueError: the rate is negative");
  row.outputs[0].text = waits;
  // The line of torchrun alone is no cause.
  row.outputs[1].text = row.outputs[1].text.substr(row.outputs[1].text.find("E1120"));
  CHECK(report_of(row).cause == "Gloo timed out waiting for another rank");
  // PyTorch tries again after this warning: a rank that has lost its peers had found them.
  const std::string warning =
      "[W socket.cpp:697] [c10d] The IPv6 network addresses of (llama-node-0-0.llama, 29500) "
      "cannot be retrieved (gai error: -2 - Name or service not known).\n";
  row = script_error();
  for (auto& output : row.outputs) output.text.insert(0, warning);
  CHECK(report_of(row).cause == "the script fails: ValueError: the rate is negative");
  row.outputs[1].text.clear();
  const std::string lost = row.outputs[0].text.substr(warning.size());
  CHECK(report_of(row).cause == "Gloo timed out waiting for another rank");
  // torchrun has started the ranks again, and now the name is gone.
  row.outputs[0].text = lost + "\n" + warning;
  CHECK(report_of(row).cause == "the name of a node cannot be resolved");
  row.outputs[0].text = warning + lost;
  CHECK(report_of(row).cause == "Gloo timed out waiting for another rank");
  row.outputs[0].text = warning;
  CHECK(report_of(row).cause == "the name of a node cannot be resolved");
  // A job that runs may go on.
  row = script_error();
  row.status = kRunning;
  CHECK(report_of(row).cause == "Gloo timed out waiting for another rank");
}

TEST_CASE("each symptom has an entry in docs/troubleshooting.md, with its output") {
  std::vector<Row> rows = rows_of_statuses();
  for (Row& row : rows_of_lines()) rows.push_back(std::move(row));
  std::string document = read_document();
  const std::string before = document;
  const char* const accept = std::getenv("ACCEPT");
  for (const Row& row : rows) {
    if (!row.is_in_document) continue;
    CAPTURE(row.name);
    const std::string start = "<!-- why: " + row.name + " -->\n```text\n";
    const auto at = document.find(start);
    REQUIRE(at != std::string::npos);
    const auto from = at + start.size();
    const auto to = document.find("```\n", from);
    REQUIRE(to != std::string::npos);
    const std::string text = report_of(row).to_text();
    if (accept == nullptr) CHECK(document.substr(from, to - from) == text);
    document.replace(from, to - from, text);
  }
  if (accept == nullptr || document == before) return;
  std::ofstream(kDocument) << document;
  FAIL_CHECK("docs/troubleshooting.md was written again: look at the difference");
}
