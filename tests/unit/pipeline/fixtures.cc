#include "tests/unit/pipeline/fixtures.hh"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "api/api.hh"
#include "kube/model/patch.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/warnings.hh"
#include "runtimes/plugins/registry.hh"
#include "tests/support/source_root.hh"

namespace trainer::test {

namespace {

kube::Json with_defaults(kube::Json object) {
  apply_schema_defaults(object);
  return object;
}

kube::Json runtime_object(std::string_view name, kube::Json spec) {
  return kube::Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                             {"kind", "ClusterTrainingRuntime"},
                             {"metadata", kube::Json::object({{"name", name}})},
                             {"spec", std::move(spec)}});
}

const kube::Json& need(const kube::Json* found, std::string_view what) {
  if (found == nullptr) throw std::runtime_error("there is no " + std::string(what));
  return *found;
}

}  // namespace

kube::Json yaml(std::string_view text) {
  auto value = kube::parse_yaml(text);
  if (!value) throw std::runtime_error(value.error().message);
  return *value;
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(test::source_root() + "/" + path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

kube::Json yaml_file(const std::string& path) {
  return yaml(text_of_file(path));
}

kube::Json without_empty(const kube::Json& value) {
  if (value.is_array()) {
    kube::Json out = kube::Json::array();
    for (const kube::Json& item : value.as_array()) out.push_back(without_empty(item));
    return out;
  }
  if (!value.is_object()) return value;
  kube::Json out = kube::Json::object();
  for (const auto& [name, member] : value.as_object()) {
    kube::Json below = without_empty(member);
    if (!(below.is_object() && below.empty()) || name == "emptyDir")
      out.set(name, std::move(below));
  }
  return out;
}

TrainJob trainjob(const kube::Json& object) {
  auto job = read_trainjob(with_defaults(object));
  if (!job) throw std::runtime_error(kube::to_string(job.error()));
  return *job;
}

Runtime runtime(const kube::Json& object) {
  auto read = read_runtime(with_defaults(object));
  if (!read) throw std::runtime_error(kube::to_string(read.error()));
  return *read;
}

TrainJob job_with(std::string_view spec) {
  return trainjob(kube::test::merge_patch(yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j, namespace: team, uid: 0f5c1d52-3f1c-4d4f-9a57-0d6e3c1f2b11}
spec: {runtimeRef: {name: rt}}
)"),
                                          kube::Json::object({{"spec", yaml(spec)}})));
}

Runtime torch_runtime(std::string_view spec) {
  return runtime(runtime_object("rt", kube::test::merge_patch(yaml(R"(
mlPolicy: {numNodes: 1, torch: {}}
template:
  spec:
    replicatedJobs:
    - name: node
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: "img:1"}]}}}
)"),
                                                              yaml(spec))));
}

Runtime mpi_runtime(std::string_view spec) {
  return runtime(runtime_object("rt", kube::test::merge_patch(yaml(R"(
mlPolicy: {numNodes: 1, mpi: {runLauncherAsNode: true}}
template:
  spec:
    replicatedJobs:
    - name: node
      template:
        spec: {template: {spec: {containers: [{name: node, image: "img:1", command: [/usr/sbin/sshd], args: [-De]}]}}}
    - name: launcher
      dependsOn: [{name: node, status: Ready}]
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: "img:1"}]}}}
)"),
                                                              yaml(spec))));
}

Runtime runtime_with(std::string_view ml_policy, std::string_view jobs) {
  return runtime(runtime_object(
      "rt",
      kube::Json::object(
          {{"mlPolicy", yaml(ml_policy)},
           {"template", kube::Json::object(
                            {{"spec", kube::Json::object({{"replicatedJobs", yaml(jobs)}})}})}})));
}

PipelineOptions production() {
  return PipelineOptions(production_plugins());
}

kube::FieldErrors validate_trainjob(const TrainJob& job, const TrainJob* before,
                                    const Runtime& runtime) {
  return trainer::validate_trainjob(job, before, runtime, PipelineOptions(production_plugins()));
}

std::vector<std::string> warn_trainjob(const TrainJob& job, const Runtime& runtime,
                                       const PipelineOptions& options) {
  const pipeline::Draft draft = pipeline::prepare(job, runtime, options, pipeline::Journal());
  return pipeline::warnings_of(draft);
}

std::vector<std::string> warn_runtime(const Runtime& runtime) {
  return trainer::warn_runtime(runtime, PipelineOptions(production_plugins()));
}

Built built(const TrainJob& job, const Runtime& runtime, const PipelineOptions& options) {
  auto result = build(job, runtime, options);
  if (!result) throw std::runtime_error(kube::to_string(result.error()));
  return *result;
}

kube::FieldErrors refused(const TrainJob& job, const Runtime& runtime) {
  auto result = build(job, runtime, production());
  if (result) throw std::runtime_error("it was built");
  return result.error();
}

const kube::Json& job_in(const Built& result, std::string_view name) {
  for (const kube::Json& job : result.jobset.find("spec")->get_array("replicatedJobs"))
    if (job.get_string("name") == name) return job;
  throw std::runtime_error("there is no job " + std::string(name));
}

const kube::Json& pod_in(const Built& result, std::string_view job) {
  return need(job_in(result, job).find_path({"template", "spec", "template"}), "pod template");
}

const kube::Json& container_in(const Built& result, std::string_view job,
                               std::string_view container) {
  return need(kube::find_any_container(pod_in(result, job), container), container);
}

std::vector<std::string> env_of(const kube::Json& container) {
  std::vector<std::string> out;
  for (const kube::Json& variable : container.get_array("env")) {
    const std::string name(variable.get_string("name"));
    if (const kube::Json* field = variable.find_path({"valueFrom", "fieldRef"}))
      out.push_back(name + "<-" + std::string(field->get_string("fieldPath")));
    else
      out.push_back(name + "=" + std::string(variable.get_string("value")));
  }
  return out;
}

std::string env_value(const kube::Json& container, std::string_view name) {
  for (const kube::Json& variable : container.get_array("env"))
    if (variable.get_string("name") == name) return std::string(variable.get_string("value"));
  return "";
}

std::vector<std::string> strings(const kube::Json::Array& values) {
  std::vector<std::string> out;
  for (const kube::Json& value : values) out.push_back(value.as_string());
  return out;
}

const kube::Json* dependent(const Built& result, std::string_view kind, std::string_view name) {
  for (const DependentObject& one : result.dependents)
    if (one.resource.kind == kind && one.object.find("metadata")->get_string("name") == name)
      return &one.object;
  return nullptr;
}

std::vector<std::string> paths_of(const kube::FieldErrors& errors) {
  std::vector<std::string> out;
  for (const kube::FieldError& error : errors) out.push_back(error.path);
  return out;
}

}  // namespace trainer::test
