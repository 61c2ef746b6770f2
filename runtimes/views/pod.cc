#include "runtimes/views/pod.hh"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/text.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/members.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr std::size_t kMaxFailureText = 2048;
constexpr std::size_t kMaxWaitingText = 1024;
constexpr std::size_t kMaxAttemptText = 64;  // a number; annotations may have 256 KiB

struct PodMembers {
  const Json *name, *ns, *uid, *resource_version, *deletion_timestamp, *grace_period, *jobset,
      *jobset_uid, *replicated_job, *job_index, *restart_attempt, *completion_index, *annotations,
      *node_name, *phase, *reason, *message, *conditions, *init_containers, *containers;
};

const MemberRules<PodMembers>& members_of_pods() {
  using P = PodMembers;
  static const MemberRules<P> kMembers = {
      {&P::name, {"metadata", "name"}},
      {&P::ns, {"metadata", "namespace"}},
      {&P::uid, {"metadata", "uid"}},
      {&P::resource_version, {"metadata", "resourceVersion"}},
      {&P::deletion_timestamp, {"metadata", "deletionTimestamp"}},
      {&P::grace_period, {"metadata", "deletionGracePeriodSeconds"}},
      {&P::jobset, {"metadata", "labels", jobset::kJobSetNameKey}},
      {&P::jobset_uid, {"metadata", "labels", jobset::kJobSetUidKey}},
      {&P::replicated_job, {"metadata", "labels", jobset::kReplicatedJobNameKey}},
      {&P::job_index, {"metadata", "labels", jobset::kJobIndexKey}},
      {&P::restart_attempt, {"metadata", "labels", jobset::kRestartAttemptKey}},
      {&P::completion_index, {"metadata", "labels", kCompletionIndexKey}},
      {&P::annotations,
       {"metadata", "annotations"},
       {{kCompletionIndexKey},
        {jobset::kInPlaceRestartAttemptKey},
        {jobset::kJobSetNameKey},
        {jobset::kNodeSelectorKey},
        {jobset::kExclusiveTopologyKey}}},
      {&P::node_name, {"spec", "nodeName"}},
      {&P::phase, {"status", "phase"}},
      {&P::reason, {"status", "reason"}},
      {&P::message, {"status", "message"}},
      {&P::conditions, {"status", "conditions"}, {{"type"}, {"status"}, {"reason"}, {"message"}}},
      {&P::init_containers,
       {"status", "initContainerStatuses"},
       {{"name"}, {"state"}, {"lastState"}, {"restartCount"}}},
      {&P::containers,
       {"status", "containerStatuses"},
       {{"name"}, {"state"}, {"lastState"}, {"restartCount"}}},
  };
  return kMembers;
}

const Json::Array& items_of(const Json& list) {
  static const Json::Array kNone;
  return list.is_array() ? list.as_array() : kNone;
}

const Json* find_condition(const PodMembers& of, std::string_view type) {
  for (const Json& condition : items_of(*of.conditions)) {
    if (condition.get_string("type") == type) return &condition;
  }
  return nullptr;
}

// The kubelet calls a pod not ready as soon as its containers have ended, and succeeded only when
// it has cleaned up after them. Containers of a Job that ended with 0 are not started again.
bool have_all_ended_well(const PodMembers& of) {
  const Json::Array& containers = items_of(*of.containers);
  return !containers.empty() &&
         std::all_of(containers.begin(), containers.end(), [](const Json& container) {
           return container.get("state").get("terminated").get_int("exitCode", -1) == 0;
         });
}

// Every container passes through these states before it runs, so they do not say why a pod waits.
bool is_ordinary_wait(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

void read_waiting(PodView& view, const PodMembers& of) {
  if (const Json* scheduled = find_condition(of, "PodScheduled");
      scheduled && scheduled->get_string("status") == "False") {
    view.waiting_reason = scheduled->get_string("reason");
    view.waiting_message = keep_head(scheduled->get_string("message"), kMaxWaitingText);
    return;
  }
  for (const Json* list : {of.init_containers, of.containers}) {
    for (const Json& container : items_of(*list)) {
      const Json& waiting = container.get("state").get("waiting");
      if (is_ordinary_wait(waiting.get_string("reason"))) continue;
      view.waiting_reason = waiting.get_string("reason");
      view.waiting_message = keep_head(waiting.get_string("message"), kMaxWaitingText);
      return;
    }
  }
}

std::optional<PodView::Failure> read_termination(const Json& container) {
  for (const std::string_view state : {"state", "lastState"}) {
    const Json& ended = container.get(state).get("terminated");
    if (ended.get_int("exitCode") == 0) continue;
    PodView::Failure failure;
    failure.container = container.get_string("name");
    failure.exit_code = static_cast<std::int32_t>(ended.get_int("exitCode"));
    if (ended.get_int("signal") != 0) {
      failure.signal = static_cast<std::int32_t>(ended.get_int("signal"));
    } else if (*failure.exit_code > 128 && *failure.exit_code < 128 + 65) {
      failure.signal = *failure.exit_code - 128;  // container runtimes report a signal in this way
    }
    failure.reason = ended.get_string("reason", "Error");
    failure.message = keep_tail(ended.get_string("message"), kMaxFailureText);
    failure.finished_at = kube::Time::parse(ended.get_string("finishedAt"));
    return failure;
  }
  return std::nullopt;
}

bool ended_before(const PodView::Failure& a, const PodView::Failure& b) {
  if (!a.finished_at) return false;
  return !b.finished_at || *a.finished_at < *b.finished_at;
}

// A pod that failed as a whole (evicted, refused by the kubelet, preempted) says more about it than
// the exit codes of its containers, which were only killed.
void read_pod_failure(PodView& view, const PodMembers& of) {
  if (view.phase != "Failed") return;
  std::string_view reason = text_of(*of.reason);
  std::string_view message = text_of(*of.message);
  if (const Json* disruption = find_condition(of, "DisruptionTarget");
      disruption && view.is_disrupted) {
    if (reason.empty()) reason = disruption->get_string("reason");
    if (message.empty()) message = disruption->get_string("message");
  }
  if (reason.empty() && view.failure) return;
  if (!view.failure) view.failure.emplace();
  view.failure->reason = reason.empty() ? "PodFailed" : std::string(reason);
  if (!message.empty()) view.failure->message = keep_tail(message, kMaxFailureText);
}

void read_failure(PodView& view, const PodMembers& of) {
  // Sidecars that are stopped after the main containers may end with any code.
  if (view.phase == "Succeeded") return;
  for (const Json* list : {of.init_containers, of.containers}) {
    for (const Json& container : items_of(*list)) {
      auto ended = read_termination(container);
      if (ended && (!view.failure || ended_before(*ended, *view.failure))) {
        view.failure = std::move(ended);
      }
    }
  }
  read_pod_failure(view, of);
}

// Returns when the deletion of a pod was requested: its deletionTimestamp is the end of its grace
// period.
std::optional<kube::Time> deletion_request(const PodMembers& of) {
  const auto deadline = kube::Time::parse(text_of(*of.deletion_timestamp));
  if (!deadline) return std::nullopt;
  const std::int64_t grace = of.grace_period->is_int() ? of.grace_period->as_int() : 0;
  return deadline->after(-std::max<std::int64_t>(grace, 0));
}

void drop_failure_by_deletion(PodView& view, const PodMembers& of) {
  const auto asked = deletion_request(of);
  if (!asked || !view.failure || view.is_disrupted) return;
  const auto& ended = view.failure->finished_at;
  // Times are whole seconds. Within the second of the request, only the way in which the pod ended
  // separates an effect from a cause.
  const bool was_killed = (view.failure->signal == 15 || view.failure->signal == 9) &&
                          view.failure->reason != "OOMKilled";
  if (!ended || *ended > *asked || (*ended == *asked && was_killed)) view.failure.reset();
}

// No restart of the program could have avoided these pod failures, which carry no condition.
bool is_disruption_reason(std::string_view reason) {
  return reason == "NodeLost" || reason == "UnexpectedAdmissionError" || reason == "NodeShutdown" ||
         reason == "Preempting";
}

// Pods with the other reasons make room for a more important pod, or for a placement rule
// (k8s.io/api/core/v1, "DisruptionTarget").
bool is_disruption_of_node(std::string_view reason) {
  return reason == "DeletionByTaintManager" || reason == "EvictionByEvictionAPI" ||
         reason == "DeletionByPodGC" || reason == "TerminationByKubelet";
}

std::int32_t largest_restart_count(const PodMembers& of) {
  std::int64_t largest = 0;
  for (const Json* list : {of.init_containers, of.containers}) {
    for (const Json& container : items_of(*list))
      largest = std::max(largest, container.get_int("restartCount"));
  }
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(largest, std::numeric_limits<std::int32_t>::max()));
}

void read_placement(PodView& view, const PodMembers& of) {
  const bool is_over = view.phase == "Failed" || view.phase == "Succeeded";
  view.is_exclusive_leader = is_exclusively_placed(*of.annotations) &&
                             is_placement_leader(*of.annotations) && !view.node_name.empty() &&
                             !is_over && text_of(*of.deletion_timestamp).empty();
}

void read_restarts(PodView& view, const PodMembers& of) {
  if (const Json& attempt = of.annotations->get(jobset::kInPlaceRestartAttemptKey);
      attempt.is_string())
    view.in_place_attempt = keep_head(attempt.as_string(), kMaxAttemptText);
  view.restart_count = largest_restart_count(of);
  view.is_infrastructure_failure = view.is_disrupted || is_disruption_reason(text_of(*of.reason));
  if (!view.is_infrastructure_failure) return;
  const Json* disruption = view.is_disrupted ? find_condition(of, "DisruptionTarget") : nullptr;
  view.is_node_failure = text_of(*of.reason) != "Preempting" &&
                         (!disruption || is_disruption_of_node(disruption->get_string("reason")));
}

}  // namespace

std::shared_ptr<PodView> view_pod(const Json& pod) {
  const PodMembers of = find_members(pod, members_of_pods());
  auto view = std::make_shared<PodView>();
  view->name = text_of(*of.name);
  if (view->name.empty()) return nullptr;
  view->ns = text_of(*of.ns);
  view->uid = text_of(*of.uid);
  view->resource_version = text_of(*of.resource_version);
  view->jobset = text_of(*of.jobset);
  view->jobset_uid = text_of(*of.jobset_uid);
  view->replicated_job = text_of(*of.replicated_job);
  view->job_index = text_of(*of.job_index);
  view->index = kube::parse_number<std::int32_t>(text_of(*of.completion_index));
  if (!view->index)
    view->index = kube::parse_number<std::int32_t>(of.annotations->get_string(kCompletionIndexKey));
  view->attempt = kube::parse_number<std::int32_t>(text_of(*of.restart_attempt)).value_or(0);
  view->phase = text_of(*of.phase);
  view->is_deleting = !of.deletion_timestamp->is_null();
  view->node_name = text_of(*of.node_name);
  const Json* ready = find_condition(of, "Ready");
  view->is_ready = (ready && ready->get_string("status") == "True") || have_all_ended_well(of);
  const Json* disruption = find_condition(of, "DisruptionTarget");
  view->is_disrupted = disruption && disruption->get_string("status") == "True";
  if (view->phase == "Pending" || view->phase == "Running") read_waiting(*view, of);
  read_failure(*view, of);
  drop_failure_by_deletion(*view, of);
  read_restarts(*view, of);
  read_placement(*view, of);
  return view;
}

std::shared_ptr<PodView> transform_pod(std::string_view json_text) {
  static const kube::JsonFilter kFilter = filter_of(members_of_pods());
  const auto pod = kube::parse_json(json_text, kube::kObjectLimits, kFilter);
  return pod ? view_pod(*pod) : nullptr;
}

bool is_exclusively_placed(const Json& annotations) {
  return annotations.find(jobset::kJobSetNameKey) && !annotations.find(jobset::kNodeSelectorKey) &&
         annotations.find(jobset::kExclusiveTopologyKey);
}

bool is_placement_leader(const Json& annotations) {
  return annotations.get_string(kCompletionIndexKey) == "0";
}

}  // namespace trainer
