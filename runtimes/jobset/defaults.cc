// The mutating webhook fills in these defaults on CREATE (JobSet, pkg/webhooks/jobset_webhook.go).
#include <algorithm>
#include <string>

#include "runtimes/jobset/admission.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// Returns the object at `name`, and makes it if it is absent. A value of another type stays, so
// that the schema check refuses it.
Json* make_object(Json& parent, std::string_view name) {
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
  Json* job_template = make_object(replicated_job, "template");
  Json* job = job_template ? make_object(*job_template, "spec") : nullptr;
  if (!job) return;
  default_member(*job, "completionMode", "Indexed");
  Json* pod_template = make_object(*job, "template");
  Json* pod = pod_template ? make_object(*pod_template, "spec") : nullptr;
  if (!pod) return;
  // An empty policy counts as absent, since an empty Go string does.
  Json& restart_policy = (*pod)["restartPolicy"];
  if (restart_policy.is_null() || restart_policy == Json("")) restart_policy = "OnFailure";
}

void default_network(Json& spec) {
  Json* network = make_object(spec, "network");
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

bool lacks(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  return !member || member->is_null();
}

bool is_complete_job(const Json& replicated_job) {
  const Json* job = replicated_job.find_path({"template", "spec"});
  const Json* pod = job ? job->find_path({"template", "spec"}) : nullptr;
  return pod && !lacks(*job, "completionMode") && !lacks(*pod, "restartPolicy") &&
         *pod->find("restartPolicy") != Json("");
}

bool is_complete_rule(const Json& rule) {
  const Json* name = rule.find("name");
  return name && !name->empty();
}

bool is_complete_claim_policy(const Json& policy) {
  return !lacks(policy, "retentionPolicy");
}

// Returns false also if it is no list.
bool is_each(const Json* list, bool (*is_complete)(const Json&)) {
  if (!list || !list->is_array()) return false;
  return std::all_of(list->as_array().begin(), list->as_array().end(), is_complete);
}

}  // namespace

bool lacks_late_defaults(const Json& jobset) {
  const Json* spec = jobset.find("spec");
  if (!spec || lacks(*spec, "successPolicy") || lacks(*spec, "startupPolicy")) return true;
  if (!is_each(spec->find("replicatedJobs"), is_complete_job)) return true;
  const Json* rules = spec->find_path({"failurePolicy", "rules"});
  if (rules && !is_each(rules, is_complete_rule)) return true;
  const Json* policies = spec->find("volumeClaimPolicies");
  return policies && !is_each(policies, is_complete_claim_policy);
}

void apply_webhook_defaults(Json& jobset) {
  apply_late_defaults(jobset);
  Json* spec = jobset.is_object() ? jobset.find("spec") : nullptr;
  if (spec && spec->is_object()) default_network(*spec);
}

void apply_late_defaults(Json& jobset) {
  if (!jobset.is_object()) return;
  Json* spec = make_object(jobset, "spec");
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
