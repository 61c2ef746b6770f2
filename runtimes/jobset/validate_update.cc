// A change of a JobSet is refused for these errors: JobSet, pkg/webhooks/jobset_webhook.go. The API
// server checks the rules that the CRD holds as CEL (network, policies, dependsOn).
#include <algorithm>
#include <array>
#include <utility>

#include "api/api.hh"
#include "kube/model/name_index.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/elastic.hh"
#include "runtimes/jobset/job_template.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// Returns whether an empty map means nothing in such a member; elsewhere it does ("emptyDir: {}").
bool is_plain_map(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "annotations", "labels",       "limits",   "matchLabels",
      "metadata",    "nodeSelector", "requests", "resources"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool says_nothing(std::string_view name, const Json& value) {
  return value.is_null() || (value.is_array() && value.empty()) ||
         (value.is_object() && value.empty() && is_plain_map(name));
}

// Removes at every level what is equal to being absent.
Json normalised(const Json& value) {
  if (value.is_array()) {
    Json::Array items;
    for (const Json& item : value.as_array()) items.push_back(normalised(item));
    return items;
  }
  if (!value.is_object()) return value;
  Json result = Json::object();
  for (const auto& [name, member] : value.as_object()) {
    Json reduced = normalised(member);
    if (!says_nothing(name, reduced)) result.set(name, std::move(reduced));
  }
  return result;
}

// Copies the member, or its absence.
void copy_member(const Json& from, Json& to, std::string_view name) {
  const Json* value = from.find(name);
  if (value) {
    to[name] = *value;
  } else if (to.is_object()) {
    to.erase(name);
  }
}

// These are the replicated jobs before the change, by name.
class Before {
 public:
  explicit Before(const std::vector<ReplicatedJob>& jobs)
      : jobs_(jobs),
        by_name_(jobs, [](const ReplicatedJob& job) { return std::string_view(job.name); }) {}
  const ReplicatedJob* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at ? &jobs_[*at] : nullptr;
  }

 private:
  const std::vector<ReplicatedJob>& jobs_;
  kube::NameIndex by_name_;
};

bool is_object_or_absent(const Json* value) {
  return !value || value->is_null() || value->is_object();
}

// Replaces the members in `masked` that may change by their old values, so that a comparison shows
// only forbidden changes. A template that is no object is compared unchanged.
void mask_scheduling(const ReplicatedJob& before, ReplicatedJob& masked) {
  const Json& old_template = job_spec_of(before).get("template");
  Json* spec = masked.template_.find("spec");
  if (!spec || !spec->is_object()) return;
  if (!is_object_or_absent(spec->find("template"))) return;
  Json& pod_template = (*spec)["template"];
  if (pod_template.is_null()) pod_template = Json::object();
  for (const std::string_view part : {"metadata", "spec"}) {
    if (!is_object_or_absent(pod_template.find(part))) return;
    if (pod_template[part].is_null()) pod_template[part] = Json::object();
  }
  for (const std::string_view name : {"annotations", "labels"}) {
    copy_member(old_template.get("metadata"), pod_template["metadata"], name);
  }
  for (const std::string_view name : {"nodeSelector", "tolerations", "schedulingGates"}) {
    copy_member(old_template.get("spec"), pod_template["spec"], name);
  }
}

void check_new_size(const ReplicatedJob& job, const std::string& path, kube::FieldErrors& errors) {
  const auto parallelism = job_number(job, "parallelism");
  const auto completions = job_number(job, "completions");
  if (parallelism && *parallelism < 1) {
    errors.push_back(kube::invalid(kube::join_field(path, "parallelism"), *parallelism,
                                   "parallelism must be >= 1"));
  }
  if (completions && *completions < 1) {
    errors.push_back(kube::invalid(kube::join_field(path, "completions"), *completions,
                                   "completions must be >= 1"));
  }
  if (parallelism && completions && parallelism != completions) {
    errors.push_back(
        kube::invalid(kube::join_field(path, "completions"), *completions,
                      "completions must be equal to parallelism for Elastic Indexed Jobs"));
  }
}

// Checks a change of size, and replaces it by the old size.
void check_elastic(const JobSet& before, const Before& jobs, std::vector<ReplicatedJob>& masked,
                   const Gates& gates, kube::FieldErrors& errors) {
  for (std::size_t i = 0; i < masked.size(); ++i) {
    const ReplicatedJob* old = jobs.find(masked[i].name);
    if (!old || !is_indexed(masked[i])) continue;
    const bool has_changed =
        job_spec_of(*old).get("parallelism") != job_spec_of(masked[i]).get("parallelism") ||
        job_spec_of(*old).get("completions") != job_spec_of(masked[i]).get("completions");
    if (!has_changed) continue;
    const auto at = static_cast<std::size_t>(old - before.spec.replicatedJobs.data());
    if (!may_resize(before, at, job_number(masked[i], "parallelism"), gates)) continue;
    const std::string path =
        kube::join_field(kube::join_index("spec.replicatedJobs", i), "template.spec");
    if (is_finished(before.status)) {
      errors.push_back(kube::forbidden(path,
                                       "Cannot mutate parallelism or completions when JobSet is in "
                                       "a terminal state (Completed or Failed)"));
    } else {
      check_new_size(masked[i], path, errors);
    }
    Json& spec = masked[i].template_["spec"];
    copy_member(job_spec_of(*old), spec, "parallelism");
    copy_member(job_spec_of(*old), spec, "completions");
  }
}

Json replicated_jobs(std::vector<ReplicatedJob> jobs) {
  JobSetSpec spec;
  spec.replicatedJobs = std::move(jobs);
  return write(spec).get("replicatedJobs");
}

// Two lists of jobs that differ in spelling alone have this form in common. Upstream compares Go
// structs, and clients with Go types (Kueue) write the whole list back from theirs.
Json meaning_of(std::vector<ReplicatedJob> jobs) {
  Json list = replicated_jobs(std::move(jobs));
  kube::write_as_go(list);
  return normalised(list);
}

}  // namespace

kube::FieldErrors validate_update(const JobSet& before, const JobSet& after, const Gates& gates) {
  kube::FieldErrors errors;
  std::vector<ReplicatedJob> masked = after.spec.replicatedJobs;
  const Before jobs(before.spec.replicatedJobs);
  if (gates.elastic_jobset || elastic_nodes(before))
    check_elastic(before, jobs, masked, gates, errors);
  // One request may change the template and suspend, or change it and resume.
  if (before.spec.suspend.value_or(false) || after.spec.suspend.value_or(false)) {
    for (ReplicatedJob& job : masked) {
      const ReplicatedJob* old = jobs.find(job.name);
      if (old) mask_scheduling(*old, job);
    }
  }
  if (meaning_of(std::move(masked)) != meaning_of(before.spec.replicatedJobs)) {
    errors.push_back(kube::invalid(
        "spec.replicatedJobs", replicated_jobs(after.spec.replicatedJobs), "field is immutable"));
  }
  if (before.spec.managedBy != after.spec.managedBy) {
    errors.push_back(kube::invalid("spec.managedBy",
                                   after.spec.managedBy ? Json(*after.spec.managedBy) : Json(),
                                   "field is immutable"));
  }
  return errors;
}

}  // namespace trainer::jobset
