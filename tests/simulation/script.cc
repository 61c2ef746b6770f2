#include "tests/simulation/script.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/simulation/job_status.hh"

namespace trainer::simulation {
namespace {

using kube::Json;

constexpr std::string_view kNamespace = "team";

int number(const Json& labels, std::string_view key) {
  return std::atoi(std::string(labels.get_string(key)).c_str());
}

Json pod_template() {
  Json container = Json::object({{"name", "node"}, {"image", "example.com/train:1"}});
  Json spec = Json::object({{"restartPolicy", "Never"}});
  spec.set("containers", Json::array({std::move(container)}));
  return Json::object({{"spec", std::move(spec)}});
}

// A seeded policy and the plan of attempts that goes with it.
class Writer {
 public:
  Writer(Chance& chance, Lineage& lineage) : chance_(chance), lineage_(lineage) {}

  void write() {
    choose_parts();
    Json spec = jobset_spec();
    choose_failures(spec);
    choose_end(spec);
    if (lineage_.is_trainjob) {
      write_trainjob(std::move(spec));
    } else {
      write_jobset(std::move(spec));
    }
  }

 private:
  void choose_parts() {
    auto& parts = lineage_.parts;
    const int others = lineage_.is_trainjob ? chance_.below(2) : chance_.below(3);
    for (int i = 0; i < others; ++i) {
      parts.push_back({fmt::format("part-{}", i), lineage_.is_trainjob ? 1 : chance_.between(1, 2),
                       chance_.between(1, 2)});
    }
    Part last{"node", lineage_.is_trainjob ? 1 : chance_.between(1, 3), chance_.between(1, 3)};
    parts.push_back(std::move(last));
    for (Part& part : parts) {
      if (!chance_.percent(15)) continue;
      part.backoff_limit = chance_.between(1, 2);
      part.flakes = chance_.between(0, part.backoff_limit);
    }
    lineage_.is_elastic = lineage_.is_trainjob && chance_.percent(30);
    if (!lineage_.is_elastic) return;
    Part& elastic = parts.back();
    lineage_.least_nodes = chance_.between(1, elastic.pods);
    lineage_.most_nodes = chance_.between(elastic.pods, 4);
    elastic.backoff_limit = 0;  // the controller sets another one
    elastic.flakes = chance_.below(3);
  }

  Json replicated_job(Part& part) {
    Json spec = Json::object({{"backoffLimit", part.backoff_limit}});
    spec.set("parallelism", part.pods).set("completions", part.pods);
    spec.set("completionMode", "Indexed").set("template", pod_template());
    if (part.is_awaited && chance_.percent(15)) {
      spec.set("ttlSecondsAfterFinished", chance_.between(1, 20));
    }
    Json job_template = Json::object({{"spec", std::move(spec)}});
    if (lineage_.is_trainjob && part.name == "node") {
      Json labels = Json::object({{"trainer.kubeflow.org/trainjob-ancestor-step", "trainer"}});
      job_template.set("metadata", Json::object({{"labels", std::move(labels)}}));
    }
    Json job = Json::object({{"name", part.name}, {"template", std::move(job_template)}});
    if (!lineage_.is_trainjob) job.set("replicas", part.jobs);
    return job;
  }

  Json jobset_spec() {
    auto& parts = lineage_.parts;
    Json spec = Json::object();
    const bool is_in_order = chance_.percent(15);
    if (is_in_order) spec.set("startupPolicy", Json::object({{"startupPolicyOrder", "InOrder"}}));
    std::vector<Json> dependencies(parts.size());
    for (std::size_t i = 1; i < parts.size() && !is_in_order; ++i) {
      if (!chance_.percent(60)) continue;
      const bool is_complete = chance_.percent(60);
      parts[i - 1].is_awaited = parts[i - 1].is_awaited || is_complete;
      Json one = Json::object({{"name", parts[i - 1].name}});
      one.set("status", is_complete ? "Complete" : "Ready");
      dependencies[i] = Json::array({std::move(one)});
    }
    Json jobs = Json::array();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Json job = replicated_job(parts[i]);
      if (!dependencies[i].is_null()) job.set("dependsOn", std::move(dependencies[i]));
      jobs.push_back(std::move(job));
    }
    spec.set("replicatedJobs", std::move(jobs));
    choose_success(spec);
    return spec;
  }

  // Chooses whose success is the success of all: the last part's, or everybody's.
  void choose_success(Json& spec) {
    auto& parts = lineage_.parts;
    if (!chance_.percent(35)) return;
    Json policy = Json::object({{"operator", chance_.percent(50) ? "Any" : "All"}});
    policy.set("targetReplicatedJobs", Json::array({parts.back().name}));
    spec.set("successPolicy", std::move(policy));
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      parts[i].is_endless = !parts[i].is_awaited && chance_.percent(50);
    }
  }

  Failure any_failure() {
    Failure failure;
    failure.part = static_cast<std::size_t>(chance_.below(static_cast<int>(lineage_.parts.size())));
    failure.job = chance_.below(lineage_.parts[failure.part].jobs);
    failure.pod = chance_.below(lineage_.parts[failure.part].pods);
    return failure;
  }

  // Chooses the result of the rules after the failures, one attempt after the other.
  void choose_failures(Json& spec) {
    static const std::vector<std::string> kActions = {"FailJobSet", "RestartJobSet",
                                                      "RestartJobSetAndIgnoreMaxRestarts"};
    const int desired = lineage_.is_elastic ? 0 : chance_.below(4);
    for (int i = 0; i < desired; ++i) lineage_.failures.push_back(any_failure());
    const bool has_policy = chance_.percent(80);
    const int limit = has_policy ? chance_.below(4) : 0;
    std::string rule_part;
    std::string action;
    if (has_policy) {
      Json policy = Json::object({{"maxRestarts", limit}});
      policy.set("restartStrategy", chance_.percent(50) ? "Recreate" : "BlockingRecreate");
      if (chance_.percent(40)) {
        rule_part = lineage_
                        .parts[static_cast<std::size_t>(
                            chance_.below(static_cast<int>(lineage_.parts.size())))]
                        .name;
        action = chance_.pick(kActions);
        Json rule = Json::object({{"name", "rule"}, {"action", action}});
        rule.set("targetReplicatedJobs", Json::array({rule_part}));
        policy.set("rules", Json::array({std::move(rule)}));
      }
      spec.set("failurePolicy", std::move(policy));
    }
    int counted = 0;
    for (std::size_t i = 0; i < lineage_.failures.size(); ++i) {
      const bool is_ruled = lineage_.parts[lineage_.failures[i].part].name == rule_part;
      const bool is_free = is_ruled && action == "RestartJobSetAndIgnoreMaxRestarts";
      const bool is_fatal = is_ruled && action == "FailJobSet";
      if (!has_policy || is_fatal || (!is_free && counted >= limit)) {
        lineage_.ending = Ending::kFailed;
        lineage_.reason = !has_policy ? "FailedJobs"
                          : is_fatal  ? "FailJobSetFailurePolicyAction"
                                      : "ReachedMaxRestarts";
        lineage_.failures.resize(i + 1);
        return;
      }
      if (!is_free) ++counted;
      ++lineage_.restarts;
    }
  }

  void choose_end(Json& spec) {
    if (lineage_.ending == Ending::kFailed) {
      if (chance_.percent(10)) expire(spec);
      return;
    }
    const int choice = chance_.below(100);
    if (choice < 10) {
      lineage_.is_hanging = true;
      lineage_.ending = Ending::kRunning;
    } else if (choice < 20) {
      lineage_.ending = Ending::kSuspended;
      lineage_.is_hanging = true;
    } else if (choice < 30) {
      expire(spec);
    } else if (choice < 38 && lineage_.is_trainjob) {
      lineage_.is_hanging = true;
      lineage_.ending = Ending::kFailed;
      lineage_.reason = "DeadlineExceeded";
    }
  }

  // The JobSet is deleted a while after its end. A hand-written one is gone then, while a TrainJob
  // keeps its own end.
  void expire(Json& spec) {
    if (!lineage_.is_trainjob) lineage_.is_expiring = true;
    spec.set("ttlSecondsAfterFinished", chance_.between(5, 30));
  }

  // `asker` asks for the restarts instead of the template. The restarts then keep what is complete
  // and what serves, of parts that never fail.
  void ask_for_restarts(Json& spec, Json& asker) {
    Json& policy = spec["failurePolicy"];
    for (const auto member : {"maxRestarts", "rules"}) {
      if (const Json* value = policy.find(member)) asker["failurePolicy"].set(member, *value);
      policy.erase(member);
    }
    const auto& failures = lineage_.failures;
    for (std::size_t i = 0; i + 1 < lineage_.parts.size(); ++i) {
      const Part& part = lineage_.parts[i];
      const bool is_failing = std::any_of(failures.begin(), failures.end(),
                                          [i](const Failure& each) { return each.part == i; });
      if (is_failing || !(part.is_awaited || part.is_endless)) continue;
      spec["replicatedJobs"].as_array()[i]["template"]["metadata"]["labels"].set(
          "trainer.kubeflow.org/trainjob-ancestor-step", "cache-initializer");
    }
  }

  void write_trainjob(Json spec) {
    Json job_spec = Json::object();
    Json run_policy = Json::object();
    if (spec.find("failurePolicy") && chance_.percent(50))
      ask_for_restarts(spec, chance_.percent(50) ? job_spec : run_policy);
    const int nodes = lineage_.parts.back().pods;
    Json policy = Json::object({{"numNodes", 1}});
    if (chance_.percent(50) || lineage_.is_elastic) policy.set("torch", Json::object());
    if (lineage_.is_elastic)
      policy["torch"].set("elasticPolicy", Json::object({{"minNodes", lineage_.least_nodes},
                                                         {"maxNodes", lineage_.most_nodes},
                                                         {"maxRestarts", 10}}));
    Json runtime_spec = Json::object({{"mlPolicy", std::move(policy)}});
    runtime_spec.set("template", Json::object({{"spec", std::move(spec)}}));
    // The job sets it, or its runtime.
    const auto limit = [&](std::string_view name, int least, int most) {
      (chance_.percent(50) ? job_spec : run_policy).set(name, chance_.between(least, most));
    };
    if (lineage_.reason == "DeadlineExceeded") limit("activeDeadlineSeconds", 30, 90);
    if (lineage_.ending != Ending::kRunning && lineage_.ending != Ending::kSuspended &&
        chance_.percent(10)) {
      limit("ttlSecondsAfterFinished", 5, 30);
      lineage_.is_expiring = true;
    }
    if (!run_policy.empty()) runtime_spec.set("runPolicy", std::move(run_policy));
    const bool is_namespaced = chance_.percent(30);
    const std::string name = "runtime-of-" + lineage_.key.name;
    lineage_.runtime = Json::object({{"metadata", Json::object({{"name", name}})}});
    if (is_namespaced) lineage_.runtime["metadata"].set("namespace", lineage_.key.ns);
    lineage_.runtime.set("spec", std::move(runtime_spec));

    Json ref = Json::object({{"name", name}});
    ref.set("kind", is_namespaced ? "TrainingRuntime" : "ClusterTrainingRuntime");
    job_spec.set("runtimeRef", std::move(ref));
    job_spec.set("trainer", Json::object({{"numNodes", nodes}}));
    finish("TrainJob", std::move(job_spec));
  }

  void write_jobset(Json spec) { finish("JobSet", std::move(spec)); }

  void finish(std::string_view kind, Json spec) {
    Json metadata = Json::object({{"name", lineage_.key.name}, {"namespace", lineage_.key.ns}});
    lineage_.object = Json::object({{"kind", kind}, {"metadata", std::move(metadata)}});
    lineage_.object.set("spec", std::move(spec));
  }

  Chance& chance_;
  Lineage& lineage_;
};

}  // namespace

std::string_view name_of(Ending ending) {
  switch (ending) {
    case Ending::kComplete:
      return "complete";
    case Ending::kFailed:
      return "failed";
    case Ending::kRunning:
      return "running";
    case Ending::kSuspended:
      return "suspended";
    case Ending::kGone:
      return "gone";
  }
  return "";
}

Script Script::of(Chance& chance) {
  Script script;
  const int count = chance.between(1, 3);
  for (int i = 0; i < count; ++i) {
    Lineage lineage;
    lineage.key = {std::string(kNamespace), fmt::format("job-{}", i)};
    lineage.is_trainjob = chance.percent(60);
    Writer(chance, lineage).write();
    lineage.is_deleted = chance.percent(8);
    script.lineages.push_back(std::move(lineage));
  }
  return script;
}

const Lineage* Script::find(std::string_view name) const {
  for (const Lineage& lineage : lineages) {
    if (lineage.key.name == name) return &lineage;
  }
  return nullptr;
}

Fate Script::decide(Chance& chance, const Json& pod, int failures) const {
  Fate fate;
  fate.until_running = chance.wait(50, 2'000);
  fate.until_ready = chance.wait(10, 500);
  const Json& labels = *pod.find_path({"metadata", "labels"});
  const Lineage* lineage = find(labels.get_string("jobset.sigs.k8s.io/jobset-name"));
  if (!lineage) return fate;
  const auto part =
      std::find_if(lineage->parts.begin(), lineage->parts.end(), [&labels](const Part& candidate) {
        return candidate.name == labels.get_string("jobset.sigs.k8s.io/replicatedjob-name");
      });
  if (part == lineage->parts.end()) return fate;
  const auto attempt =
      static_cast<std::size_t>(number(labels, "jobset.sigs.k8s.io/restart-attempt"));
  const int job = number(labels, "jobset.sigs.k8s.io/job-index");
  const int index = index_of(pod);
  const milliseconds end = chance.wait(300, 12'000);
  const bool is_last_attempt = attempt >= lineage->failures.size();
  if (!is_last_attempt) {
    const Failure& failure = lineage->failures[attempt];
    const bool is_failing_part = &*part == &lineage->parts[failure.part];
    if (is_failing_part && failure.job == job && failure.pod == index) {
      fate.until_end = end;
      fate.exit_code = 3;
      return fate;
    }
    if (is_failing_part || !part->is_awaited) return fate;  // until the attempt is over
  }
  const bool is_elastic = lineage->is_elastic && &*part == &lineage->parts.back();
  if ((index == 0 || (is_elastic && chance.percent(50))) && failures < part->flakes) {
    fate.until_end = chance.wait(100, 1'000);
    fate.exit_code = 1;
    return fate;
  }
  const bool is_endless = part->is_endless || (lineage->is_hanging && !part->is_awaited);
  if (!is_endless) fate.until_end = end;
  return fate;
}

}  // namespace trainer::simulation
