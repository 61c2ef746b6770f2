#include "runtimes/jobset/disruption.hh"

#include <utility>

#include "runtimes/jobset/names.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

bool names_disruption(const Json& rule) {
  for (const Json& condition : rule.get_array("onPodConditions")) {
    if (condition.get_string("type") == kDisruptionTarget) return true;
  }
  return false;
}

}  // namespace

bool is_pod_of(const PodView& pod, const JobView& job, bool is_kept) {
  return pod.replicated_job == job.replicated_job && pod.job_index == job.job_index &&
         (is_kept || std::to_string(pod.attempt) == job.restart_attempt);
}

std::int32_t max_disruption_restarts(const JobSet& jobset) {
  const auto annotation = jobset.metadata.annotations.find(kMaxDisruptionRestartsKey);
  if (annotation == jobset.metadata.annotations.end()) return 0;
  return parse_count(annotation->second).value_or(0);
}

void report_disruptions(Json& job_spec) {
  // The API accepts a podFailurePolicy only for pods that are never restarted in place, and only if
  // replacements wait for the failure.
  const Json* pod_spec = job_spec.find_path({"template", "spec"});
  if (!pod_spec || pod_spec->get_string("restartPolicy") != "Never") return;
  if (job_spec.get_string("podReplacementPolicy", "Failed") != "Failed") return;
  Json& policy = job_spec["podFailurePolicy"];
  if (policy.is_null()) policy = Json::object();
  if (!policy.is_object()) return;
  Json& rules = policy["rules"];
  if (rules.is_null()) rules = Json::array();
  constexpr std::size_t kMaxRules = 20;  // the Job API's limit
  if (!rules.is_array() || rules.size() >= kMaxRules) return;
  for (const Json& rule : rules.as_array()) {
    if (names_disruption(rule)) return;
  }
  Json condition = Json::object({{"type", kDisruptionTarget}, {"status", "True"}});
  Json rule = Json::object(
      {{"action", "FailJob"}, {"onPodConditions", Json::array({std::move(condition)})}});
  // This rule comes first: a disrupted pod's exit code (137, 143) may match a rule that is meant
  // for the program.
  rules.as_array().insert(rules.as_array().begin(), std::move(rule));
}

bool was_disrupted(const JobView& job, const std::vector<const PodView*>& pods, bool is_kept) {
  const kube::Condition* failure = job.failure();
  if (failure && failure->reason == "PodFailurePolicy" &&
      failure->message.find(kDisruptionTarget) != std::string::npos) {
    return true;
  }
  for (const PodView* pod : pods) {
    if (pod->is_infrastructure_failure && is_pod_of(*pod, job, is_kept)) return true;
  }
  return false;
}

}  // namespace trainer::jobset
