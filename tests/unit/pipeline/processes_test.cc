// Whatever numbers a user writes, the numbers of processes that pods read are positive and fit 32
// bits; a new job that asks for more is refused.
#include "runtimes/lifecycle/processes.hh"

#include <fmt/format.h>

#include <limits>
#include <regex>
#include <set>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/model/text.hh"
#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;

// These are JSON values of each type that a client may send.
constexpr const char* kValues[] = {"0",
                                   "-1",
                                   "2147483647",
                                   "2147483648",
                                   "9223372036854775807",
                                   "1e30",
                                   "4",
                                   "'0'",
                                   "'-1'",
                                   "'2147483647'",
                                   "'9223372036854775807'",
                                   "'1e30'",
                                   "'99999999999999999999'",
                                   "' 4'",
                                   "'4 '",
                                   "4194304",
                                   "4194305",
                                   "'4194305'",
                                   "3000000",
                                   "'1E28'",
                                   "0.5"};

constexpr const char* kPolicies[] = {"{}",
                                     "{torch: {}}",
                                     "{torch: {launcher: env}}",
                                     "{torch: {numProcPerNode: cpu}}",
                                     "{jax: {}}",
                                     "{xgboost: {}}",
                                     "{flux: {}}",
                                     "{mpi: {}}",
                                     "{mpi: {runLauncherAsNode: true}}",
                                     "{mpi: {mpiImplementation: Intel}}",
                                     "{mpi: {mpiImplementation: MPICH}}"};

// V is the place of the value. The first fields are of the job, the others of its runtime.
struct Field {
  const char* trainer;
  const char* policy = "{}";
  const char* container = "{}";
  const char* job = "{}";
};
constexpr Field kFields[] = {
    {.trainer = "{numNodes: V}"},
    {.trainer = "{numProcPerNode: V}"},
    {.trainer = "{numNodes: 1000, numProcPerNode: V}"},
    {.trainer = "{resourcesPerNode: {requests: {cpu: V}}}"},
    {.trainer = "{resourcesPerNode: {limits: {cpu: V}}}"},
    {.trainer = "{numNodes: 1000, resourcesPerNode: {limits: {cpu: V}}}"},
    {.trainer = "{resourcesPerNode: {limits: {nvidia.com/gpu: V}}}"},
    {.trainer = "{resourcesPerNode: {requests: {aws.amazon.com/neuroncore: V}}}"},
    {.trainer = "{numNodes: 1000, resourcesPerNode: {limits: {aws.amazon.com/neuroncore: V}}}"},
    {.trainer = "{numNodes: 2, numProcPerNode: 3, resourcesPerNode: {limits: {amd.com/gpu: V}}}"},
    {.trainer = "{}", .policy = "{numNodes: V}"},
    {.trainer = "{}", .policy = "{FRAMEWORK: {numProcPerNode: V}}"},
    {.trainer = "{numNodes: 1000}", .policy = "{FRAMEWORK: {numProcPerNode: V}}"},
    {.trainer = "{}", .container = "{resources: {limits: {cpu: V}}}"},
    {.trainer = "{}", .container = "{resources: {requests: {nvidia.com/gpu: V}}}"},
    {.trainer = "{}", .container = "{resources: {limits: {amd.com/gpu: V}}}"},
    {.trainer = "{}", .job = "{parallelism: V, completions: V}"},
};

std::string with(std::string text, std::string_view mark, std::string_view value) {
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

Json merged_documents(Json to, const Json& from) {
  for (const auto& [name, value] : from.as_object())
    if (value.is_object() && to.get(name).is_object())
      to.set(name, merged_documents(to.get(name), value));
    else
      to.set(name, value);
  return to;
}

Json runtime_object(const Json& policy, const Field& field, std::string_view value) {
  const std::string framework = policy.empty() ? "torch" : policy.as_object().begin()->first;
  const Json ml =
      merged_documents(policy, yaml(with(with(field.policy, "FRAMEWORK", framework), "V", value)));
  const Json container = merged_documents(yaml("{name: node, image: i, command: [run]}"),
                                          yaml(with(field.container, "V", value)));
  Json jobs = Json::array();
  for (const char* name : {"node", "launcher"}) {
    if (std::string_view(name) == "launcher" && framework != "mpi") continue;
    const bool is_labelled = (framework == "mpi") == (std::string_view(name) == "launcher");
    Json spec = yaml(with(field.job, "V", value));
    spec["template"]["spec"].set("containers", Json::array({container}));
    Json job = Json::object({{"name", name}});
    job["template"].set("spec", spec);
    if (is_labelled) job["template"]["metadata"]["labels"].set(kAncestorLabel, "trainer");
    jobs.push_back(job);
  }
  Json object = yaml(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: "
      "rt}}");
  object["spec"].set("mlPolicy", ml);
  object["spec"]["template"]["spec"].set("replicatedJobs", jobs);
  return object;
}

Json job_object(const Field& field, std::string_view value) {
  Json object = yaml(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: j, namespace: "
      "team}, spec: {runtimeRef: {name: rt}}}");
  object["spec"].set("trainer", yaml(with(field.trainer, "V", value)));
  return object;
}

bool is_count(const std::string& text) {
  const auto number = kube::parse_number<std::int64_t>(text);
  return number && *number >= 1 && *number <= std::numeric_limits<std::int32_t>::max() &&
         std::to_string(*number) == text;
}

// Returns the counts in a text, each behind its mark.
std::vector<std::string> counts_in(const std::string& text) {
  static const std::regex kMarks(
      R"((?: slots=| -N | -n | -g |--cores=0-|--gpus=0-|j\S*:)(-?[0-9]+))");
  std::vector<std::string> counts;
  for (std::sregex_iterator at(text.begin(), text.end(), kMarks), end; at != end; ++at)
    counts.push_back((*at)[1]);
  return counts;
}

// Returns all texts from which pods read how many processes there are.
std::set<std::pair<std::string, std::string>> counts_of(const Built& result) {
  static constexpr const char* kNames[] = {"PET_NNODES",        "PET_NPROC_PER_NODE",
                                           "WORLD_SIZE",        "DMLC_NUM_WORKER",
                                           "JAX_NUM_PROCESSES", "OMPI_MCA_orte_set_default_slots",
                                           "I_MPI_PERHOST"};
  std::set<std::pair<std::string, std::string>> counts;
  for (const Json& job : result.jobset.get("spec").get_array("replicatedJobs")) {
    const Json& spec = job.get_path({"template", "spec"});
    if (spec.get_int("parallelism") < 1) continue;  // there is no pod that reads them
    for (const Json& container : spec.get_path({"template", "spec"}).get_array("containers"))
      for (const Json& variable : container.get_array("env"))
        for (const char* name : kNames)
          if (variable.get_string("name") == name && variable.get_string("value") != "auto" &&
              variable.get_string("value") != "gpu")
            counts.emplace(name, variable.get_string("value"));
  }
  for (const DependentObject& object : result.dependents)
    if (object.resource.kind == "ConfigMap")
      for (const auto& [file, text] : object.object.get_object("data"))
        for (std::string& count : counts_in(text.as_string()))
          counts.emplace(file, std::move(count));
  return counts;
}

}  // namespace

TEST_CASE("each number of processes is positive and fits 32 bits, or the job is refused",
          "[processes]") {
  int made = 0;
  int refused = 0;
  int tried = 0;
  for (const char* policy : kPolicies)
    for (const Field& field : kFields)
      for (const char* value : kValues) {
        if (kIsSanitized && tried++ % 19 != 0) continue;
        INFO(policy << " " << field.trainer << field.policy << field.container << field.job << " "
                    << value);
        const auto runtime = read_runtime(runtime_object(yaml(policy), field, value));
        const auto job = read_trainjob(job_object(field, value));
        if (!runtime || !job) continue;  // the schema refuses it
        const kube::FieldErrors errors = validate_trainjob(*job, nullptr, *runtime);
        // A stored job is built though it would be refused.
        const auto built = build(*job, *runtime, production());
        refused += !errors.empty();
        if (!built) continue;
        ++made;
        for (const auto& [name, count] : counts_of(*built)) {
          INFO(name << "=" << count);
          CHECK(is_count(count));
        }
      }
  CHECK(made > times(1'000));
  CHECK(refused > times(100));
}

TEST_CASE("too many processes are refused at the field that asks for them", "[processes]") {
  struct Row {
    const char* policy;
    const char* trainer;
    const char* container;  // the container of the runtime
    const char* error;
  };
  const Row row = GENERATE(
      Row{"{torch: {}}", "{numProcPerNode: 4194305}", "{}",
          "spec.trainer.numProcPerNode: Invalid value: 4194305: a node runs 1 to 4194304 "
          "processes, and not 4194305: ask for a number in between"},
      Row{"{torch: {}}", "{resourcesPerNode: {requests: {cpu: 1e30}}}", "{}",
          "spec.trainer.resourcesPerNode.requests[cpu]: Invalid value: 1e+30: a node runs 1 to "
          "4194304 processes, and not more: ask for a number in between"},
      Row{"{xgboost: {}}", "{numNodes: 100000, resourcesPerNode: {limits: {amd.com/gpu: 30000}}}",
          "{}",
          "spec.trainer.resourcesPerNode.limits[amd.com/gpu]: Invalid value: 30000: 100000 nodes "
          "with 30000 processes each are 3000000000 processes, and a training has 2147483647 at "
          "most: ask for fewer"},
      Row{"{numNodes: 100000, mpi: {}}", "{}", "{resources: {limits: {nvidia.com/gpu: '5e6'}}}",
          "spec.runtimeRef.name: Invalid value: \"rt\": in job \"node\" of ClusterTrainingRuntime "
          "\"rt\", a node runs 1 to 4194304 processes, and not 5000000: ask for a number in "
          "between"},
      Row{"{flux: {}}", "{numNodes: 1000, numProcPerNode: 3000000}", "{}",
          "spec.trainer.numProcPerNode: Invalid value: 3000000: 1000 nodes with 3000000 processes "
          "each are 3000000000 processes, and a training has 2147483647 at most: ask for fewer"});
  const Field field{.trainer = row.trainer, .container = row.container};
  const auto runtime = read_runtime(runtime_object(yaml(row.policy), field, ""));
  const auto job = read_trainjob(job_object(field, ""));
  REQUIRE((runtime && job));
  CHECK(kube::to_string(validate_trainjob(*job, nullptr, *runtime)) == row.error);
  // An update of a stored job is not refused for what it had before.
  TrainJob after = *job;
  after.spec.runtimePatches.emplace_back().manager = "acme.io/a";
  CHECK(kube::to_string(validate_trainjob(after, &*job, *runtime)) == "");
}

}  // namespace trainer::test
