#include "runtimes/jobset/views.hh"

#include <algorithm>
#include <limits>

#include "kube/model/json_text.hh"
#include "runtimes/jobset/names.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

std::int32_t to_int32(std::int64_t value) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp(value, kMin, kMax));
}

std::optional<std::int32_t> find_int(const Json& object, std::string_view name) {
  const Json* value = object.find(name);
  if (!value || !value->is_int()) return std::nullopt;
  return to_int32(value->as_int());
}

const Json& member(const Json& object, std::string_view name) {
  static const Json kNothing;
  const Json* found = object.find(name);
  return found ? *found : kNothing;
}

std::string label(const Json& metadata, std::string_view key) {
  return std::string(member(metadata, "labels").get_string(key));
}

// The uid of the controller, provided that it is of this kind ("" for any kind).
std::string controller_uid(const Json& metadata, std::string_view api_version,
                           std::string_view kind) {
  for (const Json& owner : metadata.get_array("ownerReferences")) {
    if (!owner.get_bool("controller")) continue;
    const bool is_desired = kind.empty() || (owner.get_string("kind") == kind &&
                                             owner.get_string("apiVersion") == api_version);
    return is_desired ? std::string(owner.get_string("uid")) : std::string();
  }
  return {};
}

void read_conditions(JobView& view, const Json& status) {
  for (const Json& item : status.get_array("conditions")) {
    if (item.get_string("status") != "True") continue;
    const std::string_view type = item.get_string("type");
    if (!view.finished && (type == "Complete" || type == "Failed")) {
      view.finished = kube::Condition::read(item);
    } else if (!view.failure_target && type == "FailureTarget") {
      view.failure_target = kube::Condition::read(item);
    }
  }
}

// Pod failures that no restart of the program could have avoided and that carry no condition.
bool is_disruption_reason(std::string_view reason) {
  return reason == "NodeLost" || reason == "UnexpectedAdmissionError" || reason == "NodeShutdown" ||
         reason == "Preempting";
}

bool is_disrupted(const Json& status) {
  for (const Json& condition : status.get_array("conditions")) {
    if (condition.get_string("type") == "DisruptionTarget" &&
        condition.get_string("status") == "True") {
      return true;
    }
  }
  return is_disruption_reason(status.get_string("reason"));
}

std::int32_t largest_restart_count(const Json& status) {
  std::int64_t largest = 0;
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : status.get_array(list)) {
      largest = std::max(largest, container.get_int("restartCount"));
    }
  }
  return to_int32(largest);
}

bool is_suspended(const Json& job) {
  return member(job, "spec").get_bool("suspend");
}

kube::JsonFilter selection_of_jobs(bool has_template) {
  using enum kube::JsonFilter::Members;
  const kube::JsonFilter metadata = kube::metadata_with(
      {{"deletionTimestamp"},
       {"ownerReferences"},
       {"labels",
        kInclude,
        {{kReplicatedJobNameKey}, {kRestartAttemptKey}, {kJobRestartAttemptKey}, {kJobIndexKey}}}});
  const kube::JsonFilter pod_template{
      "template",
      kInclude,
      {{"metadata", kInclude, {{"labels"}, {"annotations"}}},
       {"spec", kInclude, {{"nodeSelector"}, {"tolerations"}, {"schedulingGates"}}}}};
  kube::JsonFilter spec{"spec", kInclude, {{"suspend"}, {"parallelism"}, {"completions"}}};
  if (has_template) spec.below.push_back(pod_template);
  const kube::JsonFilter status{
      "status",
      kInclude,
      {{"startTime"}, {"active"}, {"ready"}, {"succeeded"}, {"failed"}, {"conditions"}}};
  return {"", kInclude, {{"apiVersion"}, {"kind"}, metadata, spec, status}};
}

}  // namespace

const kube::Condition* JobView::failure() const {
  if (finished) return finished->type == "Failed" ? &*finished : nullptr;
  return failure_target ? &*failure_target : nullptr;
}

Json scheduling_of(const Json& pod_template) {
  Json scheduling = Json::object();
  const Json& metadata = member(pod_template, "metadata");
  const Json& spec = member(pod_template, "spec");
  for (const std::string_view name : {"labels", "annotations"}) {
    if (const Json* value = metadata.find(name)) scheduling.set(name, *value);
  }
  for (const std::string_view name : {"nodeSelector", "tolerations", "schedulingGates"}) {
    if (const Json* value = spec.find(name)) scheduling.set(name, *value);
  }
  return scheduling;
}

std::shared_ptr<JobView> transform_job(std::string_view json_text) {
  // Only of a suspended Job the template counts.
  static const kube::JsonFilter kUsual = selection_of_jobs(false);
  static const kube::JsonFilter kSuspended = selection_of_jobs(true);
  auto job = kube::parse_json(json_text, {}, kUsual);
  if (job && is_suspended(*job)) job = kube::parse_json(json_text, {}, kSuspended);
  return job ? view_job(*job) : nullptr;
}

std::shared_ptr<JobView> view_job(const Json& job) {
  const Json& metadata = member(job, "metadata");
  const Json& spec = member(job, "spec");
  const Json& status = member(job, "status");
  auto view = std::make_shared<JobView>();
  view->name = metadata.get_string("name");
  if (view->name.empty()) return nullptr;
  view->ns = metadata.get_string("namespace");
  view->uid = metadata.get_string("uid");
  view->resource_version = metadata.get_string("resourceVersion");
  view->owner_uid = controller_uid(metadata, kApiVersion, kKind);
  view->replicated_job = label(metadata, kReplicatedJobNameKey);
  view->restart_attempt = label(metadata, kRestartAttemptKey);
  view->job_restart_attempt = label(metadata, kJobRestartAttemptKey);
  view->job_index = label(metadata, kJobIndexKey);
  view->is_suspended = is_suspended(job);
  view->has_start_time = !status.get_string("startTime").empty();
  view->is_deleting = !metadata.get_string("deletionTimestamp").empty();
  view->parallelism = find_int(spec, "parallelism");
  view->completions = find_int(spec, "completions");
  view->active = to_int32(status.get_int("active"));
  view->ready = to_int32(status.get_int("ready"));
  view->succeeded = to_int32(status.get_int("succeeded"));
  view->failed = to_int32(status.get_int("failed"));
  read_conditions(*view, status);
  if (view->is_suspended) {
    view->scheduling = std::make_shared<const Json>(scheduling_of(member(spec, "template")));
  }
  return view;
}

std::shared_ptr<PodView> view_pod(const Json& pod) {
  const Json& metadata = member(pod, "metadata");
  const Json& status = member(pod, "status");
  auto view = std::make_shared<PodView>();
  view->name = metadata.get_string("name");
  if (view->name.empty()) return nullptr;
  view->ns = metadata.get_string("namespace");
  view->resource_version = metadata.get_string("resourceVersion");
  view->jobset = label(metadata, kJobSetNameKey);
  view->job_uid = controller_uid(metadata, {}, {});
  view->phase = status.get_string("phase");
  const Json& annotations = member(metadata, "annotations");
  if (const Json* attempt = annotations.find(kInPlaceRestartAttemptKey);
      attempt && attempt->is_string()) {
    view->in_place_attempt = attempt->as_string();
  }
  view->restart_count = largest_restart_count(status);
  view->replicated_job = label(metadata, kReplicatedJobNameKey);
  view->job_index = label(metadata, kJobIndexKey);
  view->restart_attempt = label(metadata, kRestartAttemptKey);
  view->is_disrupted = is_disrupted(status);
  return view;
}

}  // namespace trainer::jobset
