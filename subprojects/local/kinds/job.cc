// Defaults and checks of Jobs are kube-apiserver's (pkg/apis/batch, pkg/registry/batch/job).
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/pod_checks.hh"
#include "kube/model/resources.hh"
#include "local/kinds/cells.hh"
#include "local/kinds/kinds.hh"
#include "local/kinds/pod_spec.hh"

namespace trainer::local {
namespace {

constexpr std::string_view kUidLabel = "batch.kubernetes.io/controller-uid";

// Makes the selector of a new Job, and the labels by which it selects the pods of its template.
void generate_selector(Json& job) {
  Json& spec = job["spec"];
  const std::string uid(job.get("metadata").get_string("uid"));
  if (uid.empty() || spec.get_bool("manualSelector") || spec.find("selector") != nullptr) return;
  Json& labels = spec["template"]["metadata"]["labels"];
  const std::string name(job.get("metadata").get_string("name"));
  for (const std::string_view label : {kUidLabel, std::string_view("controller-uid")})
    labels.set(label, uid);
  for (const char* label : {"batch.kubernetes.io/job-name", "job-name"}) labels.set(label, name);
  spec.set("selector", Json::object({{"matchLabels", Json::object({{kUidLabel, uid}})}}));
}

// A Job without labels gets those of its pods.
void set_label_defaults(Json& job) {
  Json labels = job.get_path({"spec", "template", "metadata", "labels"});
  if (labels.is_object() && !labels.empty() && job.get("metadata").get("labels").empty())
    job["metadata"].set("labels", std::move(labels));
}

void set_job_defaults(Json& job) {
  if (!job.get("spec").is_object()) return;
  set_label_defaults(job);
  Json& spec = job["spec"];
  if (spec.find("completions") == nullptr && spec.find("parallelism") == nullptr)
    spec.set("completions", 1);
  set_default(spec, "parallelism", 1);
  const bool is_by_index = spec.find("backoffLimitPerIndex") != nullptr;
  set_default(spec, "backoffLimit",
              is_by_index ? Json(std::int64_t{std::numeric_limits<std::int32_t>::max()}) : Json(6));
  set_default(spec, "completionMode", "NonIndexed");
  set_default(spec, "suspend", false);
  set_default(spec, "manualSelector", false);
  const Json* policy = spec.find("podFailurePolicy");
  set_default(spec, "podReplacementPolicy", policy == nullptr ? "TerminatingOrFailed" : "Failed");
  if (Json* rules = policy == nullptr ? nullptr : spec.find_path({"podFailurePolicy", "rules"}))
    for (Json& rule : rules->as_array())
      if (Json* patterns = rule.find("onPodConditions"))
        for (Json& pattern : patterns->as_array()) set_default(pattern, "status", "True");
  if (Json* pod_spec = spec.find_path({"template", "spec"})) set_pod_spec_defaults(*pod_spec);
  generate_selector(job);
  set_label_defaults(job);
}

// Checks numbers that may not be negative.
void check_numbers(const Json& spec, FieldErrors& errors) {
  for (const char* name : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                           "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"})
    if (spec.get_int(name) < 0)
      errors.push_back(kube::invalid(kube::join_field("spec", name), spec.get(name),
                                     "must be greater than or equal to 0"));
}

void check_completion_mode(const Json& spec, FieldErrors& errors) {
  const std::string_view mode = spec.get_string("completionMode");
  if (mode != "Indexed" && mode != "NonIndexed")
    errors.push_back(kube::not_supported("spec.completionMode", mode, {"Indexed", "NonIndexed"}));
  if (mode == "Indexed") {
    constexpr std::int64_t kMost = 100'000;
    if (spec.find("completions") == nullptr)
      errors.push_back(kube::required("spec.completions", "when completion mode is Indexed"));
    if (spec.get_int("parallelism") > kMost)
      errors.push_back(
          kube::invalid("spec.parallelism", spec.get("parallelism"),
                        "must be less than or equal to 100000 when completion mode is Indexed"));
    return;
  }
  for (const char* name : {"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"})
    if (const Json* value = spec.find(name))
      errors.push_back(kube::invalid(kube::join_field("spec", name), *value,
                                     "requires indexed completion mode"));
}

void check_restart_policy(const Json& spec, FieldErrors& errors) {
  constexpr std::string_view kPath = "spec.template.spec.restartPolicy";
  const std::string_view policy = spec.get_path({"template", "spec"}).get_string("restartPolicy");
  if (policy == "Always")
    errors.push_back(kube::required(std::string(kPath), "valid values: \"OnFailure\", \"Never\""));
  else if (policy == "OnFailure" && spec.find("podFailurePolicy") != nullptr)
    errors.push_back(
        kube::invalid(std::string(kPath), policy,
                      "only \"Never\" is supported when podFailurePolicy is specified"));
}

void check_selector(const Json& spec, FieldErrors& errors) {
  const Json& labels = spec.get_path({"template", "metadata", "labels"});
  for (const auto& [name, value] : spec.get_path({"selector"}).get_object("matchLabels"))
    if (labels.get(name) != value)
      return errors.push_back(kube::invalid("spec.template.metadata.labels", labels,
                                            "`selector` does not match template `labels`"));
}

// Returns the template without the settings of scheduling, which may change while a Job is
// suspended and not started (`is_held`).
Json fixed_template(const Json& spec, bool is_held) {
  Json pod_template = spec.get("template");
  if (!is_held) return pod_template;
  if (Json* metadata = pod_template.find("metadata"))
    for (const char* name : {"labels", "annotations"}) metadata->erase(name);
  if (pod_template.get("metadata").empty()) pod_template.erase("metadata");
  Json& pod_spec = pod_template["spec"];
  for (const char* name : {"nodeSelector", "tolerations", "schedulingGates"}) pod_spec.erase(name);
  if (Json* affinity = pod_spec.find("affinity")) affinity->erase("nodeAffinity");
  if (pod_spec.get("affinity").empty()) pod_spec.erase("affinity");
  return pod_template;
}

void check_update(const Json& job, const Json& before, FieldErrors& errors) {
  const Json& spec = job.get("spec");
  const Json& old_spec = before.get("spec");
  check_immutable(spec, old_spec, "spec",
                  {"selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                   "managedBy", "successPolicy"},
                  errors);
  if (spec.get_string("completionMode") != "Indexed") {
    check_immutable(spec, old_spec, "spec", {"completions"}, errors);
  } else if (spec.get("completions") != old_spec.get("completions") &&
             spec.get("completions") != spec.get("parallelism")) {
    errors.push_back(kube::invalid("spec.completions", spec.get("completions"),
                                   "can only be modified in tandem with spec.parallelism"));
  }
  const bool is_held =
      old_spec.get_bool("suspend") && before.get("status").find("startTime") == nullptr;
  if (fixed_template(spec, is_held) != fixed_template(old_spec, is_held))
    errors.push_back(kube::invalid("spec.template", spec.get("template"), "field is immutable"));
}

FieldErrors check_job(const Json& job, const Json* before) {
  FieldErrors errors;
  const Json& spec = job.get("spec");
  check_numbers(spec, errors);
  check_completion_mode(spec, errors);
  kube::check_pod_template(spec.get("template"), "spec.template", errors);
  check_restart_policy(spec, errors);
  check_selector(spec, errors);
  if (before != nullptr) check_update(job, *before, errors);
  return errors;
}

}  // namespace

Builtin job_kind() {
  return {.resource = kube::kJobs,
          .rules = {set_job_defaults, check_job},
          .columns = "Name,Status,Completions,Duration,Age,+Containers,+Images,+Selector",
          .cells = job_cells,
          .has_status = true,
          .has_generation = true,
          .is_of_all = true};
}

}  // namespace trainer::local
