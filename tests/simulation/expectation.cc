#include "tests/simulation/expectation.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kube/model/json_text.hh"
#include "tests/simulation/job_status.hh"
#include "tests/simulation/oracle.hh"

namespace trainer::simulation {
namespace {

using kube::Json;

std::string_view plural_of(const Lineage& lineage) {
  return lineage.is_trainjob ? "trainjobs" : "jobsets";
}

const Json& status_of(const Json& object) {
  static const Json kNothing = Json::object();
  const Json* status = object.find("status");
  return status ? *status : kNothing;
}

std::string reason_of(const Json& object, std::string_view type) {
  for (const Json& condition : status_of(object).get_array("conditions")) {
    if (condition.get_string("type") == type) return std::string(condition.get_string("reason"));
  }
  return {};
}

}  // namespace

Expectation::Expectation(ApiStore& store, const Script& script) : store_(store), script_(script) {
  store_.subscribe([this](const Change& change) {
    if (!change.after) return;
    const Lineage* lineage = script_.find(change.key.name);
    if (lineage && plural_of(*lineage) == change.resource.plural) {
      last_[lineage->key] = change.after;
    }
  });
}

Expectation::Missing Expectation::missing() const {
  for (const Lineage& lineage : script_.lineages) {
    if (auto what = missing_of(lineage)) {
      return fmt::format("{} {} (to be {}): {}", lineage.is_trainjob ? "TrainJob" : "JobSet",
                         lineage.key.to_string(),
                         name_of(lineage.is_deleted ? Ending::kGone : lineage.ending), *what);
    }
  }
  return orphan();
}

Expectation::Missing Expectation::missing_of(const Lineage& lineage) const {
  const Object existing = store_.find(plural_of(lineage), lineage.key);
  const bool is_to_go = lineage.is_deleted || lineage.is_expiring;
  if (is_to_go && existing) return "it is still there";
  const auto last = last_.find(lineage.key);
  if (last == last_.end()) return "it was never seen";
  if (lineage.is_deleted) return std::nullopt;
  if (!is_to_go && !existing) return "it is gone";
  const Json& object = *last->second;
  switch (lineage.ending) {
    case Ending::kComplete:
    case Ending::kFailed:
      return missing_end(lineage, object);
    case Ending::kRunning:
      return missing_running(lineage, object);
    case Ending::kSuspended:
      return missing_suspended(lineage, object);
    case Ending::kGone:
      break;
  }
  return std::nullopt;
}

Expectation::Missing Expectation::missing_end(const Lineage& lineage, const Json& object) const {
  const std::string type = lineage.ending == Ending::kFailed ? "Failed"
                           : lineage.is_trainjob             ? "Complete"
                                                             : "Completed";
  if (!is_condition_true(object, type)) {
    return fmt::format("it lacks the condition {}; status: {}", type,
                       kube::print_json(status_of(object)));
  }
  const std::string reason = reason_of(object, type);
  if (!lineage.reason.empty() && reason != lineage.reason) {
    return fmt::format("it failed for {} instead of {}", reason, lineage.reason);
  }
  const auto phase = status_of(object).get_string("phase");
  if (lineage.is_trainjob && phase != type) return fmt::format("its phase is {}", phase);
  if (live_pods(lineage) > 0) return "pods still run";
  return wrong_restarts(lineage, object);
}

Expectation::Missing Expectation::missing_running(const Lineage& lineage,
                                                  const Json& object) const {
  const Object jobset = store_.find("jobsets", lineage.key);
  if (!jobset) return "it has no JobSet";
  for (const Part& part : lineage.parts) {
    const auto& counts = status_of(*jobset).get_array("replicatedJobsStatus");
    const auto at = std::find_if(counts.begin(), counts.end(), [&part](const Json& count) {
      return count.get_string("name") == part.name;
    });
    const auto expected = part.is_awaited ? "succeeded" : "ready";
    if (at == counts.end() || at->get_int(expected) != part.jobs) {
      return fmt::format("not all Jobs of {} are {}; status: {}", part.name, expected,
                         kube::print_json(status_of(*jobset)));
    }
  }
  if (lineage.is_trainjob) {
    const auto phase = status_of(object).get_string("phase");
    if (phase != "Running") return fmt::format("its phase is {}", phase);
    if (auto what = wrong_size(lineage, object)) return what;
    if (auto what = stale_mirror(lineage, object)) return what;
  }
  return wrong_restarts(lineage, object);
}

Expectation::Missing Expectation::missing_suspended(const Lineage& lineage,
                                                    const Json& object) const {
  if (!is_condition_true(object, "Suspended")) return "it lacks the condition Suspended";
  if (live_pods(lineage) > 0) return "pods still run";
  const Object jobset = store_.find("jobsets", lineage.key);
  if (!jobset || !jobset->find("spec")->get_bool("suspend")) return "its JobSet is not suspended";
  if (!is_condition_true(*jobset, "Suspended")) return "its JobSet lacks the condition Suspended";
  if (lineage.is_trainjob) {
    const auto phase = status_of(object).get_string("phase");
    if (phase != "Suspended" && phase != "Queued") return fmt::format("its phase is {}", phase);
    if (auto what = stale_mirror(lineage, object)) return what;
  }
  return wrong_restarts(lineage, object);
}

Expectation::Missing Expectation::wrong_restarts(const Lineage& lineage, const Json& object) const {
  const auto restarts = status_of(object).get_int("restarts");
  // If time or a user ended the job early, not all attempts took place.
  const bool is_cut = lineage.is_hanging && lineage.ending != Ending::kRunning;
  if (restarts == lineage.restarts || (is_cut && restarts < lineage.restarts)) return std::nullopt;
  return fmt::format("it counts {} restarts instead of {}", restarts, lineage.restarts);
}

// The last size that its user asked for is that of the Job, of its pods and of the status.
Expectation::Missing Expectation::wrong_size(const Lineage& lineage, const Json& trainjob) const {
  if (!lineage.is_elastic) return std::nullopt;
  const auto wanted = trainjob.get("spec").get("trainer").get_int("numNodes");
  const std::string& part = lineage.parts.back().name;
  const Object job = store_.find("jobs", {lineage.key.ns, lineage.key.name + "-" + part + "-0"});
  if (!job) return "its Job is not there";
  for (const char* const number : {"parallelism", "completions"})
    if (job->get("spec").get_int(number) != wanted)
      return fmt::format("its Job has {} {} instead of {}", number,
                         job->get("spec").get_int(number), wanted);
  if (live_pods(lineage, part) != wanted)
    return fmt::format("{} of {} pods live", live_pods(lineage, part), wanted);
  const auto total = status_of(trainjob).get("nodes").get_int("total");
  if (total != wanted) return fmt::format("its status has {} nodes instead of {}", total, wanted);
  return std::nullopt;
}

// The TrainJob's status about its Jobs is that of its JobSet.
Expectation::Missing Expectation::stale_mirror(const Lineage& lineage, const Json& trainjob) const {
  const Object jobset = store_.find("jobsets", lineage.key);
  if (!jobset) return std::nullopt;
  for (const Json& wanted : status_of(*jobset).get_array("replicatedJobsStatus")) {
    const auto& mirrored = status_of(trainjob).get_array("jobsStatus");
    const auto at = std::find_if(mirrored.begin(), mirrored.end(), [&wanted](const Json& entry) {
      return entry.get_string("name") == wanted.get_string("name");
    });
    if (at == mirrored.end()) return "jobsStatus lacks a replicated job";
    for (const auto count : {"ready", "succeeded", "failed", "active", "suspended"}) {
      if (at->get_int(count) != wanted.get_int(count)) {
        return fmt::format("jobsStatus of {} says {} {}, the JobSet {}", wanted.get_string("name"),
                           at->get_int(count), count, wanted.get_int(count));
      }
    }
  }
  return std::nullopt;
}

// Every object whose owner is gone must be removed too, and none waits for its finalizers for ever.
Expectation::Missing Expectation::orphan() const {
  for (const std::string_view plural :
       {"jobsets", "jobs", "pods", "services", "configmaps", "trainjobs"}) {
    for (const auto& [key, held] : store_.all(plural)) {
      const Object object = held.get();
      if (is_deleting(*object)) return fmt::format("{} {} is still going", plural, key.to_string());
      const auto meta = kube::ObjectMeta::of(*object);
      const auto* owner = meta.controller();
      if (owner && !store_.exists(owner->uid)) {
        return fmt::format("{} {} has outlived its owner", plural, key.to_string());
      }
    }
  }
  return std::nullopt;
}

int Expectation::live_pods(const Lineage& lineage, std::string_view part) const {
  int count = 0;
  for (const auto& [key, held] : store_.all("pods")) {
    const Object pod = held.get();
    const Json* labels = pod->find_path({"metadata", "labels"});
    const bool is_its = labels->get_string("jobset.sigs.k8s.io/jobset-name") == lineage.key.name;
    const bool is_of_part =
        part.empty() || labels->get_string("jobset.sigs.k8s.io/replicatedjob-name") == part;
    if (is_its && is_of_part && !is_over(*pod)) ++count;
  }
  return count;
}

}  // namespace trainer::simulation
