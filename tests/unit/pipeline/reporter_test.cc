// Training containers get the reporter by annotation, and keep all that they had.
#include <string>

#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

const std::string kPolicy = "trainer.kubeflow.org/hang-policy";
const std::string kDetect = "trainer.kubeflow.org/detect-hangs";
const std::string kThreshold = "trainer.kubeflow.org/hang-threshold-seconds";

PipelineOptions with_status_server() {
  PipelineOptions options = production();
  options.is_progress_enabled = true;
  return options;
}

TrainJob python_job() {
  return job_with("{trainer: {numNodes: 2, command: [torchrun, train.py], args: [--fast]}}");
}

TEST_CASE("a job that asks for it runs its command with the reporter", "[reporter]") {
  TrainJob job = python_job();
  const Built plain = built(job, torch_runtime(), with_status_server());
  job.metadata.annotations[kDetect] = "true";
  const Built result = built(job, torch_runtime(), with_status_server());
  const kube::Json& container = container_in(result, "node");
  const Words command = strings(container.get_array("command"));
  REQUIRE(command.size() == 5);
  CHECK(Words(command.begin(), command.begin() + 2) == Words{"sh", "-c"});
  CHECK(Words(command.begin() + 3, command.end()) == Words{"torchrun", "train.py"});
  CHECK(strings(container.get_array("args")) == Words{"--fast"});
  CHECK(env_value(container, "KUBEFLOW_TRAINER_REPORTER") == "1");
  CHECK(env_value(container, "PYTHONPATH").empty());
  const kube::Json* files = dependent(result, "ConfigMap", "j-reporter");
  REQUIRE(files);
  for (const char* name : {"sitecustomize.py", "trainer_reporter.py", "trainer_counters.py",
                           "trainer_signals.py", "trainer_stacks.py", "trainer_post.py"})
    CHECK_FALSE(files->get("data").get_string(name).empty());
  // Everything else is as without it.
  CHECK(plain.dependents.size() + 1 == result.dependents.size());
  CHECK(dependent(plain, "ConfigMap", "j-reporter") == nullptr);
  CHECK(job_in(plain, "node").get("replicas") == job_in(result, "node").get("replicas"));
}

TEST_CASE("jobs that do not ask, or cannot report, are as they were", "[reporter]") {
  struct Row {
    const char* what;
    const char* spec;
    const char* detect;
    bool has_server;
    const char* reports;
  };
  const Row rows[] = {
      {"switched off", "{trainer: {command: [torchrun]}}", "false", true, "true"},
      {"no status server", "{trainer: {command: [torchrun]}}", "true", false, "true"},
      {"no token", "{trainer: {command: [torchrun]}}", "true", true, "false"},
      // The image's entrypoint is unknown, and its own PYTHONPATH must not be hidden.
      {"no command", "{trainer: {}}", "true", true, "true"},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    TrainJob job = job_with(row.spec);
    PipelineOptions options = production();
    options.is_progress_enabled = row.has_server;
    job.metadata.annotations["trainer.kubeflow.org/report-progress"] = row.reports;
    const Built plain = built(job, torch_runtime(), options);
    job.metadata.annotations[kDetect] = row.detect;
    const Built result = built(job, torch_runtime(), options);
    CHECK(result.jobset == plain.jobset);
    CHECK(result.dependents.size() == plain.dependents.size());
  }
}

TEST_CASE("a job that asks for the reporter alone gets the token for it", "[reporter]") {
  PipelineOptions options = with_status_server();
  options.is_progress_opt_in = true;
  const auto reports = [&](const TrainJob& job) {
    const Built result = built(job, torch_runtime(), options);
    return !env_value(container_in(result, "node"), "KUBEFLOW_TRAINER_SERVER_TOKEN").empty();
  };
  TrainJob job = python_job();
  CHECK_FALSE(reports(job));
  job.metadata.annotations[kDetect] = "true";
  CHECK(reports(job));
  CHECK(env_value(container_in(built(job, torch_runtime(), options), "node"),
                  "KUBEFLOW_TRAINER_REPORTER") == "1");
  job.metadata.annotations["trainer.kubeflow.org/report-progress"] = "false";
  CHECK_FALSE(reports(job));
  CHECK(warn_trainjob(job, torch_runtime(), options) ==
        Words{"metadata.annotations[" + kDetect + "]: hangs are not detected, since " +
              "metadata.annotations[trainer.kubeflow.org/report-progress] is \"false\""});
}

TEST_CASE("pods carry the threshold of their job", "[reporter]") {
  TrainJob job = python_job();
  Runtime runtime = torch_runtime();
  runtime.metadata.annotations[kDetect] = "true";
  runtime.metadata.annotations[kThreshold] = "600";
  job.metadata.annotations[kThreshold] = "60";
  const Built result = built(job, runtime, with_status_server());
  CHECK(pod_in(result, "node").get("metadata").get("annotations").get_string(kThreshold) == "60");
  job.metadata.annotations.erase(kThreshold);
  const Built of_runtime = built(job, runtime, with_status_server());
  CHECK(pod_in(of_runtime, "node").get("metadata").get("annotations").get_string(kThreshold) ==
        "600");
}

TEST_CASE("the JobSet carries the policy of its job", "[reporter]") {
  TrainJob job = python_job();
  Runtime runtime = torch_runtime();
  runtime.metadata.annotations[kDetect] = "true";
  runtime.metadata.annotations[kPolicy] = "Fail";
  const auto policy = [&] {
    const Built result = built(job, runtime, with_status_server());
    return std::string(result.jobset.get_path({"metadata", "annotations"}).get_string(kPolicy));
  };
  CHECK(policy() == "Fail");
  job.metadata.annotations[kPolicy] = "Restart";
  CHECK(policy() == "Restart");
  job.metadata.annotations[kDetect] = "false";
  CHECK(policy() == "");
}

TEST_CASE("settings of the reporter that have no effect are refused or named", "[reporter]") {
  TrainJob job = python_job();
  for (const char* value : {"", "9", "86401", "5m", "-60", "1e3"}) {
    INFO(value);
    job.metadata.annotations = {{kDetect, "true"}, {kThreshold, value}};
    CHECK(paths_of(validate_trainjob(job, nullptr, torch_runtime())) ==
          Words{"metadata.annotations[" + kThreshold + "]"});
  }
  job.metadata.annotations = {{kDetect, "yes"}};
  CHECK(paths_of(validate_trainjob(job, nullptr, torch_runtime())) ==
        Words{"metadata.annotations[" + kDetect + "]"});
  job.metadata.annotations = {{kThreshold, "60"}};
  CHECK(warn_trainjob(job, torch_runtime()) ==
        Words{"metadata.annotations[" + kThreshold +
              "] has no effect without annotation trainer.kubeflow.org/detect-hangs"});
  job.metadata.annotations = {{kDetect, "true"}, {kPolicy, "restart"}};
  CHECK(paths_of(validate_trainjob(job, nullptr, torch_runtime())) ==
        Words{"metadata.annotations[" + kPolicy + "]"});
  job.metadata.annotations = {{kDetect, "true"}, {kPolicy, "Restart"}};
  CHECK(warn_trainjob(job, torch_runtime()).front().find("spec.failurePolicy.maxRestarts") !=
        std::string::npos);
  Runtime restarting = torch_runtime();
  restarting.spec.runPolicy.emplace().failurePolicy.emplace().maxRestarts = 2;
  CHECK(warn_trainjob(job, restarting).size() == 1);  // no status server
  job.spec.failurePolicy.emplace().maxRestarts = 0;
  CHECK(warn_trainjob(job, restarting).size() == 2);
  job.spec.failurePolicy.reset();
  job.metadata.annotations = {{kDetect, "true"}};
  const Words warnings = warn_trainjob(job, torch_runtime());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("statusServer.enabled") != std::string::npos);
  Runtime runtime = torch_runtime();
  runtime.metadata.annotations[kDetect] = "true";
  CHECK(warn_trainjob(python_job(), runtime).empty());
}

}  // namespace
}  // namespace trainer::test
