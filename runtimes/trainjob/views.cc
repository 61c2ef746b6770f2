#include "runtimes/trainjob/views.hh"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "runtimes/jobset/exclusive.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/views.hh"
#include "runtimes/trainjob/text.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr std::string_view kJobSetNameLabel = "jobset.sigs.k8s.io/jobset-name";
constexpr std::string_view kJobSetUidLabel = "jobset.sigs.k8s.io/jobset-uid";
constexpr std::string_view kReplicatedJobLabel = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr std::string_view kJobIndexLabel = "jobset.sigs.k8s.io/job-index";
constexpr std::string_view kAttemptLabel = "jobset.sigs.k8s.io/restart-attempt";
constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
constexpr std::size_t kMaxFailureText = 2048;
constexpr std::size_t kMaxWaitingText = 1024;

const Json& member(const Json& object, std::string_view name) {
  static const Json kNothing;
  const Json* found = object.find(name);
  return found ? *found : kNothing;
}

std::optional<std::int32_t> parse_int(std::string_view text) {
  std::int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

const Json* find_pod_condition(const Json& status, std::string_view type) {
  for (const Json& condition : status.get_array("conditions")) {
    if (condition.get_string("type") == type) return &condition;
  }
  return nullptr;
}

// The kubelet calls a pod not ready as soon as its containers have ended, and succeeded only when
// it has cleaned up behind them. Containers of a Job that ended with 0 are not started again.
bool have_all_ended_well(const Json& status) {
  const auto& containers = status.get_array("containerStatuses");
  return !containers.empty() &&
         std::all_of(containers.begin(), containers.end(), [](const Json& container) {
           return member(member(container, "state"), "terminated").get_int("exitCode", -1) == 0;
         });
}

// What every container passes through on its way says nothing about why a pod waits.
bool is_ordinary_wait(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

void read_waiting(TrainPodView& view, const Json& status) {
  if (const Json* scheduled = find_pod_condition(status, "PodScheduled");
      scheduled && scheduled->get_string("status") == "False") {
    view.waiting_reason = scheduled->get_string("reason");
    view.waiting_message = keep_head(scheduled->get_string("message"), kMaxWaitingText);
    return;
  }
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : status.get_array(list)) {
      const Json& waiting = member(member(container, "state"), "waiting");
      if (is_ordinary_wait(waiting.get_string("reason"))) continue;
      view.waiting_reason = waiting.get_string("reason");
      view.waiting_message = keep_head(waiting.get_string("message"), kMaxWaitingText);
      return;
    }
  }
}

std::optional<TrainPodView::Failure> read_termination(const Json& container) {
  for (const std::string_view state : {"state", "lastState"}) {
    const Json& ended = member(member(container, state), "terminated");
    if (ended.get_int("exitCode") == 0) continue;
    TrainPodView::Failure failure;
    failure.container = container.get_string("name");
    failure.exit_code = static_cast<std::int32_t>(ended.get_int("exitCode"));
    if (ended.get_int("signal") != 0) {
      failure.signal = static_cast<std::int32_t>(ended.get_int("signal"));
    } else if (*failure.exit_code > 128 && *failure.exit_code < 128 + 65) {
      failure.signal = *failure.exit_code - 128;  // how shells and runtimes report a signal
    }
    failure.reason = ended.get_string("reason", "Error");
    failure.message = keep_tail(ended.get_string("message"), kMaxFailureText);
    failure.finished_at = kube::Time::parse(ended.get_string("finishedAt"));
    return failure;
  }
  return std::nullopt;
}

bool ended_before(const TrainPodView::Failure& a, const TrainPodView::Failure& b) {
  if (!a.finished_at) return false;
  return !b.finished_at || *a.finished_at < *b.finished_at;
}

// A pod that failed as a whole (evicted, refused by the kubelet, preempted) says more about it than
// the exit codes of its containers, which were only killed.
void read_pod_failure(TrainPodView& view, const Json& status) {
  if (view.phase != "Failed") return;
  std::string_view reason = status.get_string("reason");
  std::string_view message = status.get_string("message");
  if (const Json* disruption = find_pod_condition(status, "DisruptionTarget");
      disruption && view.is_disrupted) {
    if (reason.empty()) reason = disruption->get_string("reason");
    if (message.empty()) message = disruption->get_string("message");
  }
  if (reason.empty() && view.failure) return;
  if (!view.failure) view.failure.emplace();
  view.failure->reason = reason.empty() ? "PodFailed" : std::string(reason);
  if (!message.empty()) view.failure->message = keep_tail(message, kMaxFailureText);
}

void read_failure(TrainPodView& view, const Json& status) {
  // Sidecars that are stopped after the main containers may end with any code.
  if (view.phase == "Succeeded") return;
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : status.get_array(list)) {
      auto ended = read_termination(container);
      if (ended && (!view.failure || ended_before(*ended, *view.failure))) {
        view.failure = std::move(ended);
      }
    }
  }
  read_pod_failure(view, status);
}

// When a pod was asked to go: its deletionTimestamp is the end of its grace period.
std::optional<kube::Time> deletion_request(const Json& metadata) {
  const auto deadline = kube::Time::parse(metadata.get_string("deletionTimestamp"));
  if (!deadline) return std::nullopt;
  return *deadline + -std::chrono::seconds(metadata.get_int("deletionGracePeriodSeconds"));
}

void drop_failure_by_deletion(TrainPodView& view, const Json& metadata) {
  const auto asked = deletion_request(metadata);
  if (!asked || !view.failure || view.is_disrupted) return;
  const auto& ended = view.failure->finished_at;
  // Times are whole seconds: within the second of the request only the way it ended tells a victim
  // from a cause.
  const bool was_killed = (view.failure->signal == 15 || view.failure->signal == 9) &&
                          view.failure->reason != "OOMKilled";
  if (!ended || *ended > *asked || (*ended == *asked && was_killed)) view.failure.reset();
}

// What the view, the expander's view and the placement of pods look at.
kube::JsonFilter selection_of_pods() {
  using enum kube::JsonFilter::Members;
  const kube::JsonFilter labels{"labels",
                                kInclude,
                                {{kJobSetNameLabel},
                                 {kJobSetUidLabel},
                                 {kReplicatedJobLabel},
                                 {kJobIndexLabel},
                                 {kAttemptLabel},
                                 {kCompletionIndex}}};
  const kube::JsonFilter annotations{"annotations",
                                     kInclude,
                                     {{kCompletionIndex},
                                      {jobset::kInPlaceRestartAttemptKey},
                                      {jobset::kJobSetNameKey},
                                      {jobset::kNodeSelectorKey},
                                      {jobset::kExclusiveTopologyKey}}};
  const kube::JsonFilter metadata = kube::metadata_with(
      {{"deletionTimestamp"}, {"deletionGracePeriodSeconds"}, labels, annotations});
  const std::vector<kube::JsonFilter> container{
      {"name"}, {"state"}, {"lastState"}, {"restartCount"}};
  const kube::JsonFilter status{
      "status",
      kInclude,
      {{"phase"},
       {"reason"},
       {"message"},
       {"conditions", kInclude, {{"type"}, {"status"}, {"reason"}, {"message"}}},
       {"initContainerStatuses", kInclude, container},
       {"containerStatuses", kInclude, container}}};
  return {"", kInclude, {metadata, {"spec", kInclude, {{"nodeName"}}}, status}};
}

}  // namespace

std::shared_ptr<TrainPodView> transform_train_pod(const Json& pod) {
  const Json& metadata = member(pod, "metadata");
  const Json& labels = member(metadata, "labels");
  const Json& status = member(pod, "status");
  if (metadata.get_string("name").empty()) return nullptr;

  auto view = std::make_shared<TrainPodView>();
  view->name = metadata.get_string("name");
  view->ns = metadata.get_string("namespace");
  view->uid = metadata.get_string("uid");
  view->resource_version = metadata.get_string("resourceVersion");
  view->jobset = labels.get_string(kJobSetNameLabel);
  view->jobset_uid = labels.get_string(kJobSetUidLabel);
  view->replicated_job = labels.get_string(kReplicatedJobLabel);
  view->job_index = labels.get_string(kJobIndexLabel);
  view->index = parse_int(labels.get_string(kCompletionIndex));
  if (!view->index) {
    view->index = parse_int(member(metadata, "annotations").get_string(kCompletionIndex));
  }
  view->attempt = parse_int(labels.get_string(kAttemptLabel)).value_or(0);
  view->phase = status.get_string("phase");
  view->is_deleting = metadata.find("deletionTimestamp") != nullptr;
  view->machine = member(pod, "spec").get_string("nodeName");
  const Json* ready = find_pod_condition(status, "Ready");
  view->is_ready = (ready && ready->get_string("status") == "True") || have_all_ended_well(status);
  const Json* disruption = find_pod_condition(status, "DisruptionTarget");
  view->is_disrupted = disruption && disruption->get_string("status") == "True";
  if (view->phase == "Pending" || view->phase == "Running") read_waiting(*view, status);
  read_failure(*view, status);
  drop_failure_by_deletion(*view, metadata);
  if (const auto expanded = jobset::view_pod(pod)) {
    view->in_place_attempt = expanded->in_place_attempt;
    view->restart_count = expanded->restart_count;
    view->is_infrastructure_failure = expanded->is_disrupted;
  }
  view->is_exclusive_leader = jobset::is_scheduled_leader(pod);
  return view;
}

std::shared_ptr<TrainPodView> transform_train_pod(std::string_view json_text) {
  static const kube::JsonFilter kSeen = selection_of_pods();
  const auto pod = kube::parse_json(json_text, {}, kSeen);
  return pod ? transform_train_pod(*pod) : nullptr;
}

}  // namespace trainer
