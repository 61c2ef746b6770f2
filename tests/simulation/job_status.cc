#include "tests/simulation/job_status.hh"

#include <cstdlib>
#include <string>

namespace trainer::simulation {
namespace {

using kube::Json;

const Json* find_condition(const Json& object, std::string_view type) {
  const Json* status = object.find("status");
  if (!status) return nullptr;
  for (const Json& condition : status->get_array("conditions")) {
    if (condition.get_string("type") == type) return &condition;
  }
  return nullptr;
}

// True when the condition changed its status.
bool put_condition(Json& status, std::string_view type, bool value, std::string_view reason,
                   std::string_view message, kube::Time now) {
  Json condition = Json::object({{"type", type}, {"status", value ? "True" : "False"}});
  condition.set("reason", reason).set("message", message);
  condition.set("lastTransitionTime", now.to_string());
  Json& conditions = status["conditions"];
  if (conditions.is_null()) conditions = Json::array();
  for (Json& known : conditions.as_array()) {
    if (known.get_string("type") != type) continue;
    if (known.get_string("status") == condition.get_string("status")) return false;
    known = std::move(condition);
    return true;
  }
  conditions.push_back(std::move(condition));
  return true;
}

void count_pods(Json& status, const std::vector<Object>& pods, JobCounts counts) {
  int active = 0;
  int ready = 0;
  int terminating = 0;
  for (const auto& pod : pods) {
    if (is_over(*pod)) continue;
    if (is_deleting(*pod)) {
      ++terminating;
    } else {
      ++active;
      if (is_ready(*pod)) ++ready;
    }
  }
  status.set("active", active).set("ready", ready).set("terminating", terminating);
  status.set("failed", counts.failed).set("succeeded", counts.succeeded);
}

bool are_all_over(const std::vector<Object>& pods) {
  for (const auto& pod : pods) {
    if (!is_over(*pod)) return false;
  }
  return true;
}

// The verdict comes at once, its execution when the last pod has ended.
void conclude(const Json& job, Json& status, const std::vector<Object>& pods, JobCounts counts,
              kube::Time now) {
  constexpr std::string_view kReason = "BackoffLimitExceeded";
  constexpr std::string_view kMessage = "Job has reached the specified backoff limit";
  if (counts.failed > job.find("spec")->get_int("backoffLimit", 6)) {
    put_condition(status, "FailureTarget", true, kReason, kMessage, now);
    if (are_all_over(pods)) put_condition(status, "Failed", true, kReason, kMessage, now);
  } else if (counts.succeeded >= completions_of(job)) {
    put_condition(status, "SuccessCriteriaMet", true, "CompletionsReached", "", now);
    if (are_all_over(pods)) {
      put_condition(status, "Complete", true, "CompletionsReached", "", now);
      status.set("completionTime", now.to_string());
    }
  }
}

}  // namespace

bool is_deleting(const Json& object) {
  return object.find("metadata")->find("deletionTimestamp") != nullptr;
}

bool is_job_condition_true(const Json& job, std::string_view type) {
  const Json* condition = find_condition(job, type);
  return condition && condition->get_string("status") == "True";
}

bool is_job_finished(const Json& job) {
  return is_job_condition_true(job, "Complete") || is_job_condition_true(job, "Failed");
}

int completions_of(const Json& job) {
  const Json& spec = *job.find("spec");
  return static_cast<int>(spec.get_int("completions", spec.get_int("parallelism", 1)));
}

std::string_view phase_of(const Json& pod) {
  const Json* status = pod.find("status");
  return status ? status->get_string("phase") : std::string_view();
}

bool is_over(const Json& pod) {
  return phase_of(pod) == "Succeeded" || phase_of(pod) == "Failed";
}

bool is_ready(const Json& pod) {
  const Json* condition = find_condition(pod, "Ready");
  return condition && condition->get_string("status") == "True";
}

int index_of(const Json& pod) {
  const Json* labels = pod.find_path({"metadata", "labels"});
  return std::atoi(
      std::string(labels->get_string("batch.kubernetes.io/job-completion-index")).c_str());
}

Json with_status(const Json& job, const std::vector<Object>& pods, JobCounts counts,
                 kube::Time now) {
  Json next = job;
  Json& status = next["status"];
  if (status.is_null()) status = Json::object();
  count_pods(status, pods, counts);
  const bool is_suspended = job.find("spec")->get_bool("suspend");
  if (is_suspended) {
    put_condition(status, "Suspended", true, "JobSuspended", "Job suspended", now);
  } else {
    const bool is_resumed =
        find_condition(job, "Suspended") &&
        put_condition(status, "Suspended", false, "JobResumed", "Job resumed", now);
    if (is_resumed || !status.find("startTime")) status.set("startTime", now.to_string());
  }
  conclude(job, status, pods, counts, now);
  return next;
}

}  // namespace trainer::simulation
