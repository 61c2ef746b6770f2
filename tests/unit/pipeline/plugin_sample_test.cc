// A plugin that lives outside runtimes/: nothing but a list that names it makes its hooks work.
#include <algorithm>

#include "kube/model/resources.hh"
#include "runtimes/pipeline/plugin.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Words = std::vector<std::string>;

constexpr const char* kAnnotation = "example.com/sample";

// Active with a runtime that has the annotation.
class Sample final : public pipeline::Plugin {
 public:
  std::string_view source() const override { return "plugin sample"; }
  bool is_active(const pipeline::Draft& draft) const override {
    return draft.annotations.contains(kAnnotation);
  }
  const MlPolicy* implied_ml_policy(const pipeline::Draft&) const override {
    static const MlPolicy kEmpty;
    return &kEmpty;
  }
  std::string_view variables_of_nodes(const MlPolicy&) const override { return "SAMPLE_*"; }
  void enforce_ml_policy(pipeline::Draft& draft) const override {
    draft.edit(0, pipeline::kNode, source())->env("SAMPLE", "ml");
  }
  void enforce_pod_spec(pipeline::Draft& draft) const override {
    draft.edit(0, pipeline::kNode, source())->env("SAMPLE_POD", "pod");
  }
  void enforce_pod_group_policy(pipeline::Draft& draft) const override {
    draft.pod_template(0)["metadata"]["labels"].set("sample-gang", draft.name());
  }
  void add_dependents(pipeline::Draft& draft) const override {
    DependentObject map;
    map.resource = kube::kConfigMaps;
    map.object = Json::object({{"apiVersion", "v1"},
                               {"kind", "ConfigMap"},
                               {"metadata", Json::object({{"name", draft.name() + "-sample"}})}});
    draft.dependents.push_back(std::move(map));
  }
  void validate(const pipeline::Draft&, kube::FieldErrors& errors) const override {
    errors.push_back(kube::forbidden("spec.sample", "the sample refuses"));
  }
  void warn(const pipeline::Draft&, Words& warnings) const override {
    warnings.push_back("spec.sample: the sample warns");
  }
  void warn_inactive(const pipeline::Draft&, Words& warnings) const override {
    warnings.push_back("spec.sample: has no effect");
  }
  void warn_runtime(const Runtime& runtime, Words& warnings) const override {
    warnings.push_back(runtime.metadata.name + ": the sample warns");
  }
};

pipeline::Plugins only_sample() {
  pipeline::Plugins list;
  list.push_back(std::make_unique<Sample>());
  return list;
}

Runtime sample_runtime(bool has_annotation) {
  return torch_runtime(
      has_annotation ? "{template: {metadata: {annotations: {example.com/sample: 'on'}}}}" : "{}");
}

TEST_CASE("a plugin of another folder takes part by being in the list") {
  const pipeline::Plugins list = only_sample();
  const TrainJob job = job_with("{}");
  const Runtime runtime = sample_runtime(true);

  const Built result = built(job, runtime, PipelineOptions(list));
  CHECK(env_of(container_in(result, "node")) == Words{"SAMPLE=ml", "SAMPLE_POD=pod"});
  CHECK(pod_in(result, "node").get_path({"metadata", "labels"}).get_string("sample-gang") == "j");
  CHECK(dependent(result, "ConfigMap", "j-sample"));
  CHECK(result.warnings == Words{"spec.sample: the sample warns"});
  CHECK(paths_of(trainer::validate_trainjob(job, nullptr, runtime, PipelineOptions(list))) ==
        Words{"spec.sample"});

  std::vector<Explanation> notes;
  REQUIRE(build(job, runtime, PipelineOptions(list), &notes));
  CHECK(std::any_of(notes.begin(), notes.end(),
                    [](const Explanation& note) { return note.source == "plugin sample"; }));
}

TEST_CASE("a plugin's policy is that of a runtime without one") {
  const pipeline::Plugins list = only_sample();
  const TrainJob job = job_with("{trainer: {resourcesPerNode: {limits: {cpu: 3}}}}");
  Runtime runtime = sample_runtime(true);
  runtime.spec.mlPolicy.reset();
  const Built result = built(job, runtime, PipelineOptions(list));
  CHECK(container_in(result, "node").get_path({"resources", "limits"}).get_string("cpu") == "3");
  CHECK(result.warnings == Words{"spec.sample: the sample warns"});
}

TEST_CASE("a plugin's variables are named where no job has the trainer's label") {
  const pipeline::Plugins list = only_sample();
  const Runtime runtime = runtime_with(
      "{}",
      "[{name: a, template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}]");
  const auto warnings = trainer::warn_runtime(runtime, PipelineOptions(list));
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return warning.find("its pods get no SAMPLE_* variables") != std::string::npos;
  }));
}

TEST_CASE("a plugin that is not active, or not in the list, does nothing but warn") {
  const pipeline::Plugins list = only_sample();
  const TrainJob job = job_with("{}");
  const Runtime plain = sample_runtime(false);
  const Built inactive = built(job, plain, PipelineOptions(list));
  const pipeline::Plugins empty;
  const Built none = built(job, plain, PipelineOptions(empty));
  CHECK(inactive.jobset == none.jobset);
  CHECK(inactive.dependents.empty());
  CHECK(inactive.warnings == Words{"spec.sample: has no effect"});
  CHECK(none.warnings.empty());
  CHECK(trainer::validate_trainjob(job, nullptr, plain, PipelineOptions(list)).empty());
  CHECK(dependent(built(job, sample_runtime(true)), "ConfigMap", "j-sample") == nullptr);
}

TEST_CASE("a plugin warns about runtimes, after the pipeline") {
  const pipeline::Plugins list = only_sample();
  const Runtime plain = sample_runtime(false);
  const pipeline::Plugins none;
  const Words warnings = trainer::warn_runtime(plain, PipelineOptions(list));
  REQUIRE_FALSE(warnings.empty());
  CHECK(warnings.back() == "rt: the sample warns");
  CHECK(trainer::warn_runtime(plain, PipelineOptions(none)).size() == warnings.size() - 1);
}

}  // namespace
}  // namespace trainer::test
