#include "runtimes/views/job.hh"

#include <algorithm>
#include <limits>

#include "kube/model/json_text.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/members.hh"

namespace trainer {
namespace {

using kube::Json;

struct JobMembers {
  const Json *name, *ns, *uid, *resource_version, *deletion_timestamp, *owners, *replicated_job,
      *restart_attempt, *job_restart_attempt, *job_index, *suspend, *parallelism, *completions,
      *pod_template, *start_time, *active, *ready, *succeeded, *failed, *conditions;
};

// This is a member of a pod template: its place, and what a resume may merge.
struct SchedulingMember {
  std::string_view part;
  std::string_view name;
};
constexpr SchedulingMember kScheduling[] = {{"metadata", "labels"},
                                            {"metadata", "annotations"},
                                            {"spec", "nodeSelector"},
                                            {"spec", "tolerations"},
                                            {"spec", "schedulingGates"}};

std::vector<kube::JsonFilter> scheduling_members() {
  std::vector<kube::JsonFilter> parts;
  for (const auto& [part, name] : kScheduling) {
    if (parts.empty() || parts.back().name != part)
      parts.push_back({part, kube::JsonFilter::Members::kInclude, {}});
    parts.back().below.push_back({name});
  }
  return parts;
}

const MemberRules<JobMembers>& members_of_jobs() {
  using J = JobMembers;
  static const MemberRules<J> kMembers = {
      {&J::name, {"metadata", "name"}},
      {&J::ns, {"metadata", "namespace"}},
      {&J::uid, {"metadata", "uid"}},
      {&J::resource_version, {"metadata", "resourceVersion"}},
      {&J::deletion_timestamp, {"metadata", "deletionTimestamp"}},
      {&J::owners, {"metadata", "ownerReferences"}},
      {&J::replicated_job, {"metadata", "labels", jobset::kReplicatedJobNameKey}},
      {&J::restart_attempt, {"metadata", "labels", jobset::kRestartAttemptKey}},
      {&J::job_restart_attempt, {"metadata", "labels", jobset::kJobRestartAttemptKey}},
      {&J::job_index, {"metadata", "labels", jobset::kJobIndexKey}},
      {&J::suspend, {"spec", "suspend"}},
      {&J::parallelism, {"spec", "parallelism"}},
      {&J::completions, {"spec", "completions"}},
      {&J::pod_template, {"spec", "template"}, scheduling_members()},
      {&J::start_time, {"status", "startTime"}},
      {&J::active, {"status", "active"}},
      {&J::ready, {"status", "ready"}},
      {&J::succeeded, {"status", "succeeded"}},
      {&J::failed, {"status", "failed"}},
      {&J::conditions, {"status", "conditions"}},
  };
  return kMembers;
}

// The template counts only while a Job is suspended.
MemberRules<JobMembers> without_template(MemberRules<JobMembers> rules) {
  std::erase_if(rules, [](const auto& rule) { return rule.member == &JobMembers::pod_template; });
  return rules;
}

bool is_true(const Json& value) {
  return value.is_bool() && value.as_bool();
}

std::optional<std::int32_t> int_of(const Json& value) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (!value.is_int()) return std::nullopt;
  return static_cast<std::int32_t>(std::clamp(value.as_int(), kMin, kMax));
}

// Returns the uid of the controller, if it is a JobSet.
std::string jobset_uid(const Json& owners) {
  if (!owners.is_array()) return {};
  for (const Json& owner : owners.as_array()) {
    if (!owner.get_bool("controller")) continue;
    const bool is_jobset = owner.get_string("kind") == jobset::kKind &&
                           owner.get_string("apiVersion") == jobset::kApiVersion;
    return is_jobset ? std::string(owner.get_string("uid")) : std::string();
  }
  return {};
}

void read_conditions(JobView& view, const Json& conditions) {
  if (!conditions.is_array()) return;
  for (const Json& item : conditions.as_array()) {
    if (item.get_string("status") != "True") continue;
    const std::string_view type = item.get_string("type");
    if (!view.finished && (type == "Complete" || type == "Failed")) {
      view.finished = kube::Condition::read(item);
    } else if (!view.failure_target && type == "FailureTarget") {
      view.failure_target = kube::Condition::read(item);
    }
  }
}

}  // namespace

const kube::Condition* JobView::failure() const {
  if (finished) return finished->type == "Failed" ? &*finished : nullptr;
  return failure_target ? &*failure_target : nullptr;
}

bool JobView::lacks_pods() const {
  if (!has_start_time || is_suspended || is_deleting || finished || failure_target) return false;
  const std::int32_t wanted = parallelism.value_or(1);
  const std::int32_t left = completions ? *completions - succeeded : wanted;
  return active < std::min(wanted, left);
}

const JobView* find_job_without_pods(const std::vector<const JobView*>& jobs) {
  const auto at =
      std::find_if(jobs.begin(), jobs.end(), [](const JobView* job) { return job->lacks_pods(); });
  return at == jobs.end() ? nullptr : *at;
}

Json scheduling_of(const Json& pod_template) {
  Json scheduling = Json::object();
  for (const auto& [part, name] : kScheduling)
    if (const Json* value = pod_template.get(part).find(name)) scheduling.set(name, *value);
  return scheduling;
}

std::shared_ptr<JobView> transform_job(std::string_view json_text) {
  static const kube::JsonFilter kSuspended = filter_of(members_of_jobs());
  static const kube::JsonFilter kUsual = filter_of(without_template(members_of_jobs()));
  auto job = kube::parse_json(json_text, kube::kObjectLimits, kUsual);
  if (job && job->get("spec").get_bool("suspend")) {
    // The view holds this part as long as the Job is suspended. It leaves out the part if the
    // template is larger.
    constexpr kube::JsonLimits kHeld{.max_values = 20'000};
    if (auto suspended = kube::parse_json(json_text, kHeld, kSuspended)) job = std::move(suspended);
  }
  return job ? view_job(*job) : nullptr;
}

std::shared_ptr<JobView> view_job(const Json& job) {
  const JobMembers of = find_members(job, members_of_jobs());
  auto view = std::make_shared<JobView>();
  view->name = text_of(*of.name);
  if (view->name.empty()) return nullptr;
  view->ns = text_of(*of.ns);
  view->uid = text_of(*of.uid);
  view->resource_version = text_of(*of.resource_version);
  view->owner_uid = jobset_uid(*of.owners);
  view->replicated_job = text_of(*of.replicated_job);
  view->restart_attempt = text_of(*of.restart_attempt);
  view->job_restart_attempt = text_of(*of.job_restart_attempt);
  view->job_index = text_of(*of.job_index);
  view->is_suspended = is_true(*of.suspend);
  view->has_start_time = !text_of(*of.start_time).empty();
  view->is_deleting = !text_of(*of.deletion_timestamp).empty();
  view->parallelism = int_of(*of.parallelism);
  view->completions = int_of(*of.completions);
  view->active = int_of(*of.active).value_or(0);
  view->ready = int_of(*of.ready).value_or(0);
  view->succeeded = int_of(*of.succeeded).value_or(0);
  view->failed = int_of(*of.failed).value_or(0);
  read_conditions(*view, *of.conditions);
  if (view->is_suspended)
    view->scheduling = std::make_shared<const Json>(scheduling_of(*of.pod_template));
  return view;
}

}  // namespace trainer
