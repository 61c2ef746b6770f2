// A runtime whose nodes train alone, because the trainer's label is missing or is there twice.
#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kLabel = "{trainer.kubeflow.org/trainjob-ancestor-step: trainer}";

// `labelled`: the names of the jobs that have the label.
Runtime runtime_of(std::string_view policy, const Words& names, const Words& labelled) {
  std::string jobs;
  for (const std::string& name : names) {
    const bool has_label = std::find(labelled.begin(), labelled.end(), name) != labelled.end();
    jobs += "\n- {name: " + name + ", template: {";
    if (has_label) jobs += "metadata: {labels: " + std::string(kLabel) + "}, ";
    jobs += "spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}";
  }
  return runtime_with(policy, jobs);
}

Words about_labels(const Words& warnings) {
  Words found;
  for (const std::string& warning : warnings)
    if (warning.find("trainjob-ancestor-step: trainer") != std::string::npos)
      found.push_back(warning);
  return found;
}

TEST_CASE("a framework without the trainer's label, or with two, is warned about", "[label]") {
  struct Row {
    const char* policy;
    Words names;
    Words labelled;
    const char* job;   // the job in the warning; "": there is none
    const char* text;  // a part of it
  };
  const Row row = GENERATE(
      Row{"{torch: {}}",
          {"node"},
          {},
          "node",
          "get no PET_* variables, and each trains alone; add"},
      Row{"{numNodes: 2, torch: {}}",
          {"other", "node"},
          {},
          "node",
          "alone, and mlPolicy.numNodes does not count its pods; add"},
      Row{"{numNodes: 2, jax: {}}", {"a"}, {}, "a", "get no JAX_* variables"},
      Row{"{xgboost: {}}", {"a", "b"}, {}, "a", "get no DMLC_* variables"},
      Row{"{numNodes: 3}", {"node"}, {}, "node", "so mlPolicy.numNodes does not count its pods"},
      Row{"{numNodes: 3, flux: {}}", {"node"}, {}, "node", "so mlPolicy.numNodes does not"},
      Row{"{}", {"node"}, {}, "", ""}, Row{"{torch: {}}", {"node"}, {"node"}, "", ""},
      Row{"{mpi: {}, numNodes: 2}", {"launcher", "node"}, {}, "", ""},
      Row{"{mpi: {runLauncherAsNode: true}}", {"launcher", "node"}, {"launcher", "node"}, "", ""},
      Row{"{torch: {}}",
          {"node", "other"},
          {"node", "other"},
          "other",
          "which job \"node\" before it has, too: its pods get no PET_* variables"},
      Row{"{jax: {}}", {"x", "b", "c"}, {"b", "c"}, "c", "leave the label out of one of them"},
      Row{"{numNodes: 2}", {"a", "b"}, {"a", "b"}, "", ""});
  INFO(row.policy << " " << row.job);
  const Runtime runtime = runtime_of(row.policy, row.names, row.labelled);
  const bool is_warned = *row.job != '\0';
  const Words found = about_labels(warn_runtime(runtime));
  REQUIRE(found.size() == (is_warned ? 1U : 0U));
  const Built result = built(job_with("{}"), runtime);
  REQUIRE(result.runtime_warnings.size() == found.size());
  if (!is_warned) return;
  const auto index = std::find(row.names.begin(), row.names.end(), row.job) - row.names.begin();
  CHECK(found[0].starts_with("spec.template.spec.replicatedJobs[" + std::to_string(index) +
                             "].template.metadata.labels: job \"" + row.job + "\" has "));
  CHECK_THAT(found[0], kube::test::contains(row.text));
  CHECK(result.runtime_warnings[0].in_runtime == found[0]);
  CHECK(result.runtime_warnings[0].text.starts_with(
      "spec.runtimeRef: in ClusterTrainingRuntime \"rt\", job \"" + std::string(row.job) +
      "\" has "));
  CHECK_THAT(result.runtime_warnings[0].text, kube::test::contains(row.text));
}

TEST_CASE("a patch may give the label to a job", "[label]") {
  const Runtime runtime = runtime_of("{numNodes: 2, torch: {}}", {"node"}, {});
  const Built result =
      built(job_with("runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: "
                     "{replicatedJobs: [{name: node, template: {metadata: {labels: " +
                     std::string(kLabel) + "}}}]}}}}]"),
            runtime);
  CHECK(result.runtime_warnings.empty());
  CHECK(env_value(container_in(result, "node"), "PET_NNODES") == "2");
}

}  // namespace
}  // namespace trainer::test
