// What the mutating webhook fills in on CREATE: jobset-contract 1.4.
#include <string>

#include "runtimes/jobset/admission.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// The object at `name`, made where it is absent. A value of another type is left for the schema
// check to refuse.
Json* object_at(Json& parent, std::string_view name) {
  Json& child = parent[name];
  if (child.is_null()) child = Json::object();
  return child.is_object() ? &child : nullptr;
}

void default_member(Json& object, std::string_view name, Json value) {
  Json& member = object[name];
  if (member.is_null()) member = std::move(value);
}

void default_job_template(Json& replicated_job) {
  if (!replicated_job.is_object()) return;
  Json* job_template = object_at(replicated_job, "template");
  Json* job = job_template ? object_at(*job_template, "spec") : nullptr;
  if (!job) return;
  default_member(*job, "completionMode", "Indexed");
  Json* pod_template = object_at(*job, "template");
  Json* pod = pod_template ? object_at(*pod_template, "spec") : nullptr;
  if (!pod) return;
  // An empty policy counts as absent, as it does for a Go string.
  Json& restart_policy = (*pod)["restartPolicy"];
  if (restart_policy.is_null() || restart_policy == Json("")) restart_policy = "OnFailure";
}

void default_network(Json& spec) {
  Json* network = object_at(spec, "network");
  if (!network) return;
  default_member(*network, "enableDNSHostnames", true);
  default_member(*network, "publishNotReadyAddresses", true);
}

void default_rule_names(Json& spec) {
  Json* failure_policy = spec.find("failurePolicy");
  Json* rules = failure_policy ? failure_policy->find("rules") : nullptr;
  if (!rules || !rules->is_array()) return;
  std::size_t index = 0;
  for (Json& rule : rules->as_array()) {
    if (rule.is_object() && (!rule.find("name") || rule["name"].empty())) {
      rule["name"] = "failurePolicyRule" + std::to_string(index);
    }
    ++index;
  }
}

void default_retention(Json& spec) {
  Json* policies = spec.find("volumeClaimPolicies");
  if (!policies || !policies->is_array()) return;
  for (Json& policy : policies->as_array()) {
    if (policy.is_object()) {
      default_member(policy, "retentionPolicy", Json::object({{"whenDeleted", "Delete"}}));
    }
  }
}

}  // namespace

void apply_webhook_defaults(Json& jobset) {
  apply_late_defaults(jobset);
  Json* spec = jobset.is_object() ? jobset.find("spec") : nullptr;
  if (spec && spec->is_object()) default_network(*spec);
}

void apply_late_defaults(Json& jobset) {
  if (!jobset.is_object()) return;
  Json* spec = object_at(jobset, "spec");
  if (!spec) return;
  default_member(*spec, "successPolicy", Json::object({{"operator", "All"}}));
  default_member(*spec, "startupPolicy", Json::object({{"startupPolicyOrder", "AnyOrder"}}));
  if (Json* jobs = spec->find("replicatedJobs"); jobs && jobs->is_array()) {
    for (Json& replicated_job : jobs->as_array()) default_job_template(replicated_job);
  }
  default_rule_names(*spec);
  default_retention(*spec);
}

}  // namespace trainer::jobset
