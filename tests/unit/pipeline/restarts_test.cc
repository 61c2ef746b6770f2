// Scripts get by annotation what they need to go on after a restart.
#include <string>

#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

const std::string kEnvironment = "trainer.kubeflow.org/restart-environment";
const std::string kVolume = "trainer.kubeflow.org/checkpoint-volume";
const std::string kAttempt =
    "TRAINER_ATTEMPT<-metadata.labels['jobset.sigs.k8s.io/restart-attempt']";

// A job that mounts the volumes "data" (a claim), "tmp" (an emptyDir) and "fixed" (read-only).
TrainJob job_with_uid(const std::string& uid) {
  TrainJob job = job_with(R"({runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec:
    {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {
      volumes: [{name: data, persistentVolumeClaim: {claimName: c}}, {name: tmp, emptyDir: {}},
                {name: fixed, persistentVolumeClaim: {claimName: d}}],
      containers: [{name: node, volumeMounts: [{name: data, mountPath: /data/},
                                               {name: tmp, mountPath: /tmp},
                                               {name: fixed, mountPath: /fixed, readOnly: true}
                                              ]}]}}}}}]}}}}]})");
  job.metadata.uid = uid;
  return job;
}

Words added(const Built& result, std::string_view container = "node") {
  Words found;
  for (const std::string& variable : env_of(container_in(result, "node", container)))
    if (variable.starts_with("TRAINER_")) found.push_back(variable);
  return found;
}

TEST_CASE("a job or its runtime asks for the attempt and a checkpoint directory", "[restarts]") {
  struct Row {
    const char *job_environment, *job_volume, *runtime_environment, *runtime_volume;  // "-": none
    bool has_attempt;
    const char* directory;  // "" for none
  };
  const Row rows[] = {
      {"-", "-", "-", "-", false, ""},
      {"true", "-", "-", "-", true, ""},
      {"-", "-", "true", "-", true, ""},
      {"false", "-", "true", "-", false, ""},
      {"-", "data", "-", "-", true, "/data/u1"},
      {"-", "-", "-", "data", true, "/data/u1"},
      {"-", "tmp", "-", "data", true, "/tmp/u1"},
      {"-", "", "-", "data", false, ""},
      {"true", "", "-", "data", true, ""},
      {"false", "data", "-", "-", false, ""},
  };
  for (const Row& row : rows) {
    INFO(row.job_environment << " " << row.job_volume << " " << row.runtime_environment << " "
                             << row.runtime_volume);
    TrainJob job = job_with_uid("u1");
    Runtime runtime = torch_runtime();
    const auto put = [](kube::ObjectMeta& meta, const std::string& key, std::string_view value) {
      if (value != "-") meta.annotations[key] = value;
    };
    put(job.metadata, kEnvironment, row.job_environment);
    put(job.metadata, kVolume, row.job_volume);
    put(runtime.metadata, kEnvironment, row.runtime_environment);
    put(runtime.metadata, kVolume, row.runtime_volume);
    CHECK(validate_trainjob(job, nullptr, runtime).empty());
    Words expected;
    if (row.has_attempt) expected.push_back(kAttempt);
    if (*row.directory) expected.push_back(std::string("TRAINER_CHECKPOINT_DIR=") + row.directory);
    CHECK(added(built(job, runtime)) == expected);
  }
}

TEST_CASE("each container that trains has them, by its own mount, also over the job's env",
          "[restarts]") {
  const Runtime runtime = runtime_with("{}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {
      containers: [{name: node, image: i, volumeMounts: [{name: v, mountPath: /a}]},
                   {name: upload, image: i, volumeMounts: [{name: v, mountPath: /b/c}]},
                   {name: log, image: i}]}}}
- name: other
  template: {spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
)");
  TrainJob job = job_with("trainer: {env: [{name: TRAINER_ATTEMPT, value: '7'}]}");
  job.metadata.annotations[kVolume] = "v";
  job.metadata.uid.clear();
  const std::string unknown = "<metadata.uid of the TrainJob>";  // offline commands print this
  const Built result = built(job, runtime);
  CHECK(added(result) == Words{kAttempt, "TRAINER_CHECKPOINT_DIR=/a/" + unknown});
  CHECK(added(result, "upload") == Words{kAttempt, "TRAINER_CHECKPOINT_DIR=/b/c/" + unknown});
  CHECK(added(result, "log") == Words{kAttempt});
  CHECK(env_of(container_in(result, "other", "main")).empty());
}

TEST_CASE("the attempt counts evictions where the JobSet controller does", "[restarts]") {
  TrainJob job = job_with("{}");
  job.metadata.annotations[kEnvironment] = "true";
  const Runtime runtime = torch_runtime();
  PipelineOptions counts = production();
  counts.counts_attempts = true;
  const std::string counted =
      "TRAINER_ATTEMPT<-metadata.annotations['jobset.sigs.k8s.io/execution-attempt']";
  const auto annotation = [](const Built& result) {
    return pod_in(result, "node")
        .get("metadata")
        .get("annotations")
        .get_string("jobset.sigs.k8s.io/execution-attempt");
  };
  const Built with = built(job, runtime, counts), without = built(job, runtime);
  CHECK(added(with) == Words{counted});
  CHECK(annotation(with) == "0");
  CHECK(added(without) == Words{kAttempt});
  CHECK(annotation(without).empty());
  // A JobSet that exists keeps its environment.
  CHECK(trainer::build(job, runtime, counts, nullptr, &without.jobset)->jobset == without.jobset);
  CHECK(trainer::build(job, runtime, production(), nullptr, &with.jobset)->jobset == with.jobset);
}

TEST_CASE("values that cannot be meant are refused or warned about", "[restarts]") {
  struct Row {
    const std::string& key;
    const char* value;
    bool is_of_runtime;
    const char* error;  // "" for none
    const char* warning;
  };
  const Row rows[] = {
      {kEnvironment, "yes", false,
       "metadata.annotations[trainer.kubeflow.org/restart-environment]: Invalid value: \"yes\": "
       "annotation trainer.kubeflow.org/restart-environment is \"true\" or \"false\", or left out",
       ""},
      {kEnvironment, "1", true,
       "spec.runtimeRef: Invalid value: \"1\": annotation trainer.kubeflow.org/restart-environment "
       "is \"true\" or \"false\", or left out",
       ""},
      {kVolume, "none", false,
       "metadata.annotations[trainer.kubeflow.org/checkpoint-volume]: Invalid value: \"none\": no "
       "container of the trainer mounts the volume that annotation "
       "trainer.kubeflow.org/checkpoint-volume names: add a volumeMount of it by a runtimePatch, "
       "or "
       "name one that is mounted",
       ""},
      {kVolume, "tmp", false, "",
       "metadata.annotations[trainer.kubeflow.org/checkpoint-volume]: volume \"tmp\" is an "
       "emptyDir: its checkpoints end with the pod that wrote them; use a persistentVolumeClaim"},
      {kVolume, "fixed", false, "",
       "metadata.annotations[trainer.kubeflow.org/checkpoint-volume]: volume \"fixed\" is mounted "
       "read-only, so no checkpoint can be written: leave readOnly out of its volumeMount"},
      {kVolume, "data", false, "", ""},
  };
  for (const Row& row : rows) {
    INFO(row.key << "=" << row.value);
    TrainJob job = job_with_uid("u1");
    Runtime runtime = torch_runtime();
    (row.is_of_runtime ? runtime.metadata : job.metadata).annotations[row.key] = row.value;
    CHECK(kube::to_string(validate_trainjob(job, nullptr, runtime)) == row.error);
    if (*row.error) continue;
    Words warnings;
    for (const std::string& warning : warn_trainjob(job, runtime))
      if (warning.find("checkpoint") != std::string::npos) warnings.push_back(warning);
    CHECK(warnings == (*row.warning ? Words{row.warning} : Words{}));
  }
}

}  // namespace
}  // namespace trainer::test
