#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "controller/cli/commands.hh"
#include "controller/kinds/registry.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome render(const std::string& yaml, RenderOptions options = {}) {
  std::istringstream in(yaml);
  std::ostringstream out;
  std::ostringstream err;
  Console console{in, out, err};
  options.files = {"-"};
  Outcome outcome;
  outcome.code = run_render(options, production_registry(KindOptions()), console);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

std::vector<Json> documents_of(const Outcome& outcome) {
  auto documents = kube::parse_yaml_documents(outcome.out);
  REQUIRE(documents);
  return std::move(*documents);
}

const std::string kJob = R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: team-a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 3, image: "example/image:1"}
)";

std::string job_with(const std::string& trainer) {
  return R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: team-a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {command: [torchrun, a.py], )" +
         trainer + "}\n";
}

// Deleted at the end.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& members) {
    char path[] = "/tmp/render-config-XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    close(file);
    path_ = path;
    std::ofstream(path_) << "apiVersion: config.trainer.kubeflow.org/v1alpha1\n"
                            "kind: Configuration\n"
                         << members;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("the controller's configuration counts where it is given") {
  const std::string job = job_with("resourcesPerNode: {limits: {example.com/npu: 4, cpu: 2}}");
  const ConfigFile config("devices: {counted: [example.com/npu]}\nstatusServer: {enabled: true}\n");
  CHECK(render(job).out.find("value: \"4\"") == std::string::npos);
  RenderOptions options;
  options.config_file = config.path();
  const Outcome with = render(job, options);
  CHECK(with.code == kExitDone);
  CHECK(with.out.find("value: \"4\"") != std::string::npos);
  CHECK(with.out.find("KUBEFLOW_TRAINER_SERVER_URL") != std::string::npos);
  const ConfigFile wrong("device: {}\n");
  options.config_file = wrong.path();
  CHECK(render(job, options).code == kExitUsage);
  options.config_file = "/nowhere/config.yaml";
  CHECK(render(job, options).err == "--config /nowhere/config.yaml: the file cannot be read\n");
}

TEST_CASE("what a plugin overwrites is said") {
  const ConfigFile config("statusServer: {enabled: true}\n");
  RenderOptions options;
  options.config_file = config.path();
  const Outcome outcome =
      render(job_with("env: [{name: KUBEFLOW_TRAINER_SERVER_URL, value: mine}]"), options);
  CHECK(outcome.code == kExitDone);
  CHECK(outcome.err ==
        "warning: TrainJob team-a/j: spec.trainer.env[KUBEFLOW_TRAINER_SERVER_URL]: variable "
        "KUBEFLOW_TRAINER_SERVER_URL of container node in job node has no effect, because plugin "
        "progress sets another one in its place: use another name, or leave it out\n");
}

TEST_CASE("an explanation names each source of a field once") {
  RenderOptions options;
  options.is_explained = true;
  const std::string job = R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: team-a}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  initializer:
    dataset: {storageUri: "hf://a/b", env: [{name: STORAGE_URI, value: "hf://a/b"}]}
  trainer: {env: [{name: A, value: a}]}
)";
  const Outcome outcome = render(job, options);
  CHECK(outcome.code == kExitDone);
  CHECK(outcome.out.find("env[STORAGE_URI]  <-  spec.initializer.dataset\n") != std::string::npos);
  CHECK(outcome.out.find("env[A]  <-  spec.trainer.env\n") != std::string::npos);
}

TEST_CASE("a built-in runtime is known without a file") {
  const Outcome outcome = render(kJob);
  CHECK(outcome.code == kExitDone);
  CHECK(outcome.err.empty());
  const auto documents = documents_of(outcome);
  REQUIRE(documents.size() == 1);
  CHECK(documents[0].get_string("kind") == "JobSet");
  const Json* job = documents[0].find_path({"spec", "replicatedJobs"});
  REQUIRE(job != nullptr);
  CHECK(job->as_array()[0].find_path({"template", "spec", "parallelism"})->as_int() == 3);
}

TEST_CASE("a runtime of the files wins over the built-in one of its name") {
  const std::string runtime = R"(
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: "of/file:1", command: [mine]}]}}}
)";
  const Outcome outcome = render(kJob + runtime);
  CHECK(outcome.code == kExitDone);
  CHECK(outcome.err.starts_with("warning: ClusterTrainingRuntime torch-distributed: "));
  CHECK(outcome.out.find("- mine") != std::string::npos);
}

TEST_CASE("with --jobs the JobSet's Jobs are printed too, without owners that have no uid") {
  RenderOptions options;
  options.has_jobs = true;
  const auto documents = documents_of(render(kJob, options));
  REQUIRE(documents.size() == 3);
  CHECK(documents[1].get_string("kind") == "Service");
  CHECK(documents[2].get_string("kind") == "Job");
  for (const Json& document : documents)
    CHECK(document.find_path({"metadata", "ownerReferences"}) == nullptr);
}

TEST_CASE("an explanation names each path once") {
  RenderOptions options;
  options.is_explained = true;
  const Outcome text = render(kJob, options);
  CHECK(text.out.find("# Where the values above come from:") != std::string::npos);
  CHECK(documents_of(text).size() == 1);

  options.format = OutputFormat::kJson;
  const auto list = kube::parse_json(render(kJob, options).out);
  REQUIRE(list);
  CHECK(list->get_array("items").size() == 1);
  const auto& lines = list->get_array("explanations");
  REQUIRE_FALSE(lines.empty());
  std::map<std::string, int> counts;
  for (const Json& line : lines) ++counts[std::string(line.get_string("path"))];
  for (const auto& [path, count] : counts) {
    CAPTURE(path);
    CHECK(count == 1);
  }
}

TEST_CASE(
    "refusals name the object, the path and the value, and valid objects are printed "
    "nevertheless") {
  const Outcome outcome = render(R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bad}
spec: {runtimeRef: {name: nowhere}}
---
)" + kJob);
  CHECK(outcome.code == kExitRefused);
  CHECK(outcome.err.starts_with("TrainJob default/bad: spec."));
  CHECK(outcome.err.find("nowhere") != std::string::npos);
  CHECK(documents_of(outcome).size() == 1);
}

TEST_CASE("a kind of another version or project is refused with the expected version") {
  struct Case {
    const char* kind;
    const char* found;
    const char* expected;
  };
  for (const Case& c :
       {Case{"TrainJob", "trainer.kubeflow.org/v2", "trainer.kubeflow.org/v1alpha1"},
        Case{"TrainJob", "kubeflow.org/v1", "trainer.kubeflow.org/v1alpha1"},
        Case{"ClusterTrainingRuntime", "v1", "trainer.kubeflow.org/v1alpha1"},
        Case{"TrainingRuntime", "x/v1alpha1", "trainer.kubeflow.org/v1alpha1"},
        Case{"JobSet", "jobset.x-k8s.io/v1", "jobset.x-k8s.io/v1alpha2"}}) {
    CAPTURE(c.kind, c.found);
    const std::string kind = c.kind;
    const std::string found = c.found;
    const Outcome outcome = render("apiVersion: " + found + "\nkind: " + kind +
                                   "\nmetadata: {name: j, namespace: ns}\nspec: {}\n---\n" + kJob);
    CHECK(outcome.code == kExitRefused);
    CHECK(outcome.err == kind + " ns/j: apiVersion: Unsupported value: \"" + found +
                             "\": supported values: \"" + c.expected + "\"\n");
    CHECK(documents_of(outcome).size() == 1);
  }
}

TEST_CASE("older YAML is converted before the schema is checked, as in a cluster") {
  const Outcome outcome = render(R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: old}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, numProcPerNode: "4", image: "example/image:1"}
  podTemplateOverrides:
  - targetJobs: [{name: node}]
    spec: {nodeSelector: {rack: r1}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: old, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {elasticPolicy: {maxRestarts: 3}}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: "of/file:1"}]}}}
)");
  CHECK(outcome.code == kExitDone);
  for (const char* field : {"spec.trainer.numProcPerNode", "spec.podTemplateOverrides",
                            "spec.mlPolicy.torch.elasticPolicy"}) {
    CAPTURE(field, outcome.err);
    CHECK_THAT(outcome.err, kube::test::contains(field));
  }
  CHECK(outcome.out.find("rack: r1") != std::string::npos);
  CHECK(documents_of(outcome).size() == 1);
}

TEST_CASE("a warning is printed once") {
  // The pipeline and the rules of admission both warn about it.
  const Outcome outcome = render(R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: team-a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, image: "example/image:1", resourcesPerNode: {limits: {memory: 1Gi}}}
)");
  CHECK(outcome.code == kExitDone);
  std::map<std::string, int> counts;
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);) ++counts[line];
  CHECK_FALSE(counts.empty());
  for (const auto& [line, count] : counts) {
    CAPTURE(line);
    CHECK(count == 1);
  }
}

TEST_CASE("values of a wrong type do not stop the conversion: the schema refuses them") {
  for (const char* spec : {"7", "{runtimeRef: 7}", "{runtimeRef: {name: r}, runtimePatches: 7}",
                           "{runtimeRef: {name: r}, trainer: [\"4\"]}", "{labels: 7}"}) {
    CAPTURE(spec);
    const Outcome outcome = render(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bad}\nspec: " +
        std::string(spec) + "\n");
    CHECK(outcome.code == kExitRefused);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("TrainJob default/bad: spec") != std::string::npos);
  }
}

TEST_CASE("unknown fields are refused with the API server's words") {
  const Outcome outcome = render(R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bad}
spec: {runtimeRef: {name: torch-distributed}, trainer: {comand: [x], numNods: 2}}
)");
  CHECK(outcome.code == kExitRefused);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "TrainJob default/bad: strict decoding error: unknown field \"spec.trainer.comand\", "
        "unknown field \"spec.trainer.numNods\"\n");
}

TEST_CASE("unknown fields below older fields are refused, with the path that they were at") {
  struct Row {
    const char* field;    // a field of the spec
    const char* unknown;  // "" for none
  };
  const Row rows[] = {
      {"podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelectr: {a: b}}}]",
       "spec.podTemplateOverrides[0]: unknown field \"spec.nodeSelectr\""},
      {"podSpecOverrides: [{targetJobs: [{name: node}], nodeSelectr: {a: b}}]",
       "spec.podSpecOverrides[0]: unknown field \"nodeSelectr\""},
      {"podSpecOverrides: [{targetJobs: [{name: node}], nodeSelector: {a: b}}]", ""},
      {"podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}]", ""},
  };
  for (const Row& row : rows) {
    INFO(row.field);
    const Outcome outcome = render(kJob + "  " + row.field + "\n");
    const bool is_unknown = *row.unknown != '\0';
    CHECK(outcome.code == (is_unknown ? kExitRefused : kExitDone));
    CHECK(outcome.out.empty() == is_unknown);
    const std::string warning =
        std::string("warning: TrainJob team-a/j: ") + row.unknown + ", which has no effect\n";
    CHECK((outcome.err.find(", which has no effect\n") != std::string::npos) == is_unknown);
    if (is_unknown) CHECK_THAT(outcome.err, kube::test::contains(warning));
    CHECK((outcome.err.find("strict decoding error: unknown field") != std::string::npos) ==
          is_unknown);
  }
}

TEST_CASE("members of an older override that have no effect are warned about") {
  struct Row {
    const char* member;
    const char* unknown;  // "" for none
  };
  const Row rows[] = {{"specs: {nodeSelector: {a: b}}", "specs"},
                      {"nodeSelector: {a: b}", "nodeSelector"},
                      {"spec: {nodeSelector: {a: b}}", ""},
                      {"metadata: {labels: {a: b}}, manager: m", ""}};
  for (const Row& row : rows) {
    INFO(row.member);
    const Outcome outcome = render(kJob + "  podTemplateOverrides: [{targetJobs: [{name: node}], " +
                                   row.member + "}]\n");
    CHECK(outcome.code == kExitDone);
    const std::string warning =
        std::string("warning: TrainJob team-a/j: spec.podTemplateOverrides[0]: unknown field \"") +
        row.unknown + "\", which has no effect\n";
    const bool is_unknown = *row.unknown != '\0';
    CHECK((outcome.err.find(", which has no effect\n") != std::string::npos) == is_unknown);
    if (is_unknown) CHECK_THAT(outcome.err, kube::test::contains(warning));
  }
}

TEST_CASE("the schema is checked before the rules") {
  const Outcome outcome = render(R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bad}
spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: many}}
)");
  CHECK(outcome.code == kExitRefused);
  CHECK(outcome.err.find("TrainJob default/bad: spec.trainer.numNodes: Invalid value: ") !=
        std::string::npos);
}

TEST_CASE("JobSets without a TrainJob are rendered with their defaults") {
  const Outcome outcome = render(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
  - name: a
    replicas: 2
    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: x, image: "i:1"}]}}}}
)",
                                 [] {
                                   RenderOptions options;
                                   options.has_jobs = true;
                                   return options;
                                 }());
  CHECK(outcome.err.empty());
  const auto documents = documents_of(outcome);
  REQUIRE(documents.size() == 4);
  CHECK(documents[0].find_path({"spec", "successPolicy", "operator"}) != nullptr);
  CHECK(documents[3].find_path({"metadata", "name"})->as_string() == "js-a-1");
}

TEST_CASE("what cannot be rendered is reported") {
  CHECK(render("").err == "nothing to render: name a file with a TrainJob or JobSet\n");
  CHECK(render("").code == kExitRefused);
  const Outcome other =
      render("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" + kJob);
  CHECK(other.err == "warning: ConfigMap c: this kind is not rendered: it is left out\n");
  CHECK(other.code == kExitDone);
  CHECK(render("just text").err ==
        "standard input: document 1 is no Kubernetes object: apiVersion or kind is missing\n");
  CHECK(render("a: [").code == kExitRefused);
  CHECK(render("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: 7\n").code ==
        kExitRefused);
  RenderOptions gates;
  gates.feature_gates = "Nope=true";
  CHECK(render(kJob, gates).code == kExitUsage);
}

TEST_CASE("the items of a kubectl List are rendered") {
  const auto job = kube::parse_yaml(kJob);
  REQUIRE(job);
  const Json list =
      Json::object({{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array({*job})}});
  CHECK(documents_of(render(kube::print_json(list))).size() == 1);
}

TEST_CASE("rendering twice gives the same bytes") {
  RenderOptions options;
  options.has_jobs = true;
  options.is_explained = true;
  CHECK(render(kJob, options).out == render(kJob, options).out);
}
