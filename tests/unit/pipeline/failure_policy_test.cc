// The failure policies of a runtime's template, its runPolicy and the job in one JobSet.
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

constexpr const char* kJobs = R"(
- name: dataset
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
    spec: {template: {spec: {containers: [{name: dataset-initializer, image: "img:1"}]}}}
- name: cache
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: cache-initializer}}
    spec: {template: {spec: {containers: [{name: cache, image: "img:1"}]}}}
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: "img:1"}]}}}
)";

struct Row {
  const char* about;
  const char* by_template;    // its spec.failurePolicy
  const char* by_annotation;  // its max-disruption-restarts
  const char* run_policy;
  const char* job;          // its spec
  const char* policy;       // the policy of the JobSet
  const char* annotations;  // the annotations of the JobSet
};

constexpr const char* kKept = "{trainer.kubeflow.org/kept-on-restart: 'dataset,cache'}";
constexpr const char* kKeptAnd2 =
    "{trainer.kubeflow.org/kept-on-restart: 'dataset,cache', "
    "trainer.kubeflow.org/max-disruption-restarts: '2'}";

const Row kRows[] = {
    {"nothing is said", "", "", "", "{}", "", ""},
    {"the template alone is as it was", "{maxRestarts: 1}", "4", "{ttlSecondsAfterFinished: 1}",
     "{}", "{maxRestarts: 1, restartStrategy: Recreate}",
     "{trainer.kubeflow.org/max-disruption-restarts: '4'}"},
    {"the job's", "", "", "", "{failurePolicy: {maxRestarts: 3}}", "{maxRestarts: 3}", kKept},
    {"the job's over the template's, member by member",
     "{maxRestarts: 1, restartStrategy: BlockingRecreate, rules: [{name: a, action: FailJobSet}]}",
     "4", "", "{failurePolicy: {maxRestarts: 0, maxDisruptionRestarts: 2}}",
     "{maxRestarts: 0, restartStrategy: BlockingRecreate, rules: [{name: a, action: FailJobSet}]}",
     kKeptAnd2},
    {"the runtime's default over its template", "{maxRestarts: 1}", "",
     "{failurePolicy: {maxRestarts: 5}}", "{}", "{maxRestarts: 5, restartStrategy: Recreate}",
     kKept},
    {"the job's over the default", "", "",
     "{failurePolicy: {maxRestarts: 5, maxDisruptionRestarts: 2, rules: [{name: a, action: "
     "FailJobSet}]}}",
     "{failurePolicy: {maxRestarts: 1, rules: [{name: b, action: RestartJobSet}]}}",
     "{maxRestarts: 1, rules: [{name: b, action: RestartJobSet}]}", kKeptAnd2},
    {"disruptions only", "", "", "", "{failurePolicy: {maxDisruptionRestarts: 2}}", "", kKeptAnd2},
};

kube::Json parsed(std::string_view text) {
  return text.empty() ? kube::Json() : yaml(text);
}

TEST_CASE("the job's failure policy goes over the default, and that over the template's") {
  for (const Row& row : kRows) {
    INFO(row.about);
    Runtime runtime = runtime_with("{numNodes: 1}", kJobs);
    JobSetTemplate& made = *runtime.spec.template_;
    if (*row.by_template)
      made.spec =
          torch_runtime(std::string("template: {spec: {failurePolicy: ") + row.by_template + "}}")
              .spec.template_->spec;
    made.spec->replicatedJobs =
        runtime_with("{numNodes: 1}", kJobs).spec.template_->spec->replicatedJobs;
    if (*row.by_annotation)
      made.metadata = yaml(std::string("{annotations: {trainer.kubeflow.org/"
                                       "max-disruption-restarts: '") +
                           row.by_annotation + "'}}");
    if (*row.run_policy)
      runtime.spec.runPolicy =
          torch_runtime(std::string("runPolicy: ") + row.run_policy).spec.runPolicy;
    const Built result = built(job_with(row.job), runtime);
    CHECK(result.jobset.get("spec").get("failurePolicy") == parsed(row.policy));
    CHECK(result.jobset.get("metadata").get("annotations") == parsed(row.annotations));
  }
}

}  // namespace
}  // namespace trainer::test
