// Existing Jobs are suspended and resumed here (JobSet, pkg/controllers).
#include <set>
#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/execution_attempts.hh"
#include "runtimes/jobset/policies.hh"
#include "runtimes/views/labels.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// Returns the members of `desired` that `present` lacks or that differ there.
Json missing_members(const Json& present, const Json& desired) {
  Json missing = Json::object();
  if (!desired.is_object()) return missing;
  for (const auto& [name, value] : desired.as_object()) {
    const Json* stored = present.find(name);
    if (!stored || *stored != value) missing.set(name, value);
  }
  return missing;
}

// Returns `present` followed by the items of `desired` that it lacks; null if it lacks none.
Json united_list(const Json& present, const Json& desired) {
  if (!desired.is_array()) return {};
  if (present == desired) return {};
  Json::Array united = present.is_array() ? present.as_array() : Json::Array();
  const std::size_t before = united.size();
  std::set<std::string> known;
  for (const Json& item : united) known.insert(kube::print_json(item));
  for (const Json& item : desired.as_array()) {
    if (known.insert(kube::print_json(item)).second) united.push_back(item);
  }
  return united.size() == before ? Json() : Json(std::move(united));
}

// Returns the changes that a suspended Job's pod template needs to agree with the JobSet as it is
// now. Nothing is ever removed from a Job: each list or map becomes the union of both, in which the
// JobSet's values win, and `attempt` wins over these. The result is empty if nothing must change.
Json template_patch(const ReplicatedJobState& rjob, const JobView& job, const Json& attempt) {
  const Json* pod_template = rjob.spec->template_.find_path({"spec", "template"});
  if (!pod_template) return Json::object();
  Json desired = scheduling_of(*pod_template);
  for (const auto& [key, value] : attempt.as_object()) desired["annotations"].set(key, value);
  const Json& present = job.scheduling ? *job.scheduling : Json::null();
  Json metadata = Json::object();
  Json spec = Json::object();
  for (const std::string_view name : {"labels", "annotations", "nodeSelector"}) {
    Json missing = missing_members(present.get(name), desired.get(name));
    if (missing.empty()) continue;
    (name == "nodeSelector" ? spec : metadata).set(name, std::move(missing));
  }
  for (const std::string_view name : {"tolerations", "schedulingGates"}) {
    Json united = united_list(present.get(name), desired.get(name));
    if (!united.is_null()) spec.set(name, std::move(united));
  }
  Json patch = Json::object();
  if (!metadata.empty()) patch.set("metadata", std::move(metadata));
  if (!spec.empty()) patch.set("spec", std::move(spec));
  return patch;
}

// The API lets the template of a suspended Job change only while the Job has no start time. If a
// Job ran before, its start time is removed first, and the event of that write starts the next
// reconcile.
void resume_job(JobSetContext& context, const ReplicatedJobState& rjob, const JobView& job) {
  Json attempt = Json::object();
  if (counts_attempts(*rjob.spec))
    attempt.set(kExecutionAttemptKey, std::to_string(current_attempt(context.jobset.status)));
  Json changes = template_patch(rjob, job, attempt);
  if (!changes.empty() && job.has_start_time) {
    Json status = Json::object({{"startTime", nullptr}});
    return context.patch_job(job, "status", Json::object({{"status", std::move(status)}}));
  }
  Json patch = Json::object({{"spec", Json::object({{"suspend", false}})}});
  if (!changes.empty()) patch["spec"].set("template", std::move(changes));
  if (!attempt.empty()) patch["metadata"].set("annotations", std::move(attempt));
  context.patch_job(job, "", std::move(patch));
}

// Returns the suspended active Jobs of every replicated job, by position.
std::vector<std::vector<const JobView*>> suspended_by_rjob(JobSetContext& context) {
  std::vector<std::vector<const JobView*>> held(context.rjobs.size());
  for (const JobView* job : context.jobs.active) {
    if (!job->is_suspended || job->is_deleting) continue;
    const ReplicatedJobState* rjob = context.find_rjob(job->replicated_job);
    if (rjob) held[static_cast<std::size_t>(rjob - context.rjobs.data())].push_back(job);
  }
  return held;
}

}  // namespace

// Both conditions follow what was observed, and not what was requested: the API server may refuse
// the request, and its answer starts the next reconcile.
void suspend_jobs(JobSetContext& context) {
  bool is_done = true;
  for (const JobView* job : context.jobs.active) {
    if (job->is_suspended || job->is_deleting) continue;
    is_done = false;
    if (!context.has_room()) break;
    Json spec = Json::object({{"suspend", true}});
    context.patch_job(*job, "", Json::object({{"spec", std::move(spec)}}));
  }
  if (!is_done) return;
  context.set_condition(kSuspended, true, "SuspendedJobs", "jobset is suspended");
  context.set_condition(kRestarting, false, "JobSetSuspended", "jobset is suspended");
}

void resume_jobs(JobSetContext& context) {
  const auto held = suspended_by_rjob(context);
  bool is_done = true;
  for (std::size_t i = 0; i < context.rjobs.size(); ++i) {
    const ReplicatedJobState& rjob = context.rjobs[i];
    if (!are_dependencies_met(context, rjob)) continue;
    if (context.is_in_order() && rjob.has_started()) continue;
    for (const JobView* job : held[i]) {
      if (!context.has_room()) break;
      resume_job(context, rjob, *job);
    }
    is_done = is_done && held[i].empty();
    if (context.is_in_order()) {
      start_in_order(context);
      return;
    }
  }
  if (is_done) context.set_condition(kSuspended, false, "ResumeJobs", "jobset is resumed");
}

}  // namespace trainer::jobset
