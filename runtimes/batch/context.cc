#include "runtimes/batch/context.hh"

#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"

namespace trainer::batch {
namespace {

using kube::Json;

UidSet uids_of(const Json& uncounted, std::string_view name) {
  UidSet uids;
  for (const Json& uid : uncounted.get_array(name))
    if (uid.is_string()) uids.insert(uid.as_string());
  return uids;
}

Json make_condition(std::string_view type, bool is_true, std::string_view reason,
                    std::string_view message, kube::Time now) {
  return Json::object({{"type", type},
                       {"status", is_true ? "True" : "False"},
                       {"reason", reason},
                       {"message", message},
                       {"lastProbeTime", now.to_string()},
                       {"lastTransitionTime", now.to_string()}});
}

}  // namespace

Context::Context(const Observed& given)
    : observed(given), job(*given.job), status(given.job->status()) {
  if (!status.is_object()) status = Json::object();
  plan.backoff = observed.backoff;
  for (const BatchPodView* pod : observed.pods)
    if (pod->is_of_job && pod->controller_uid == job.metadata.uid) pods.push_back(pod);
  if (job.is_indexed)
    std::stable_sort(pods.begin(), pods.end(), [](const BatchPodView* a, const BatchPodView* b) {
      return a->index < b->index;
    });
  std::copy_if(pods.begin(), pods.end(), std::back_inserter(active),
               [](const BatchPodView* pod) { return pod->is_active(); });
  const Json& uncounted = job.status().get("uncountedTerminatedPods");
  uncounted_succeeded = uids_of(uncounted, "succeeded");
  uncounted_failed = uids_of(uncounted, "failed");
}

// A pod that is being deleted may never reach phase Failed.
bool Context::is_failed(const BatchPodView& pod) const {
  if (pod.phase == "Failed") return true;
  if (!pod.is_deleting || pod.is_over()) return false;
  return !job.replaces_only_failed || pod.node_name.empty();
}

bool Context::is_terminating(const BatchPodView& pod) const {
  return pod.is_deleting && !pod.is_over() && !pod.node_name.empty();
}

bool Context::is_new(const BatchPodView& pod, const UidSet& uncounted) const {
  return pod.is_tracked && !uncounted.contains(pod.uid) && job.has_index(pod.index);
}

void Context::delete_pod(const BatchPodView& pod, int stage) {
  kube::Action& action = plan.actions.emplace_back();
  action.verb = kube::Action::Verb::kDelete;
  action.resource = kube::kPods;
  action.key = pod.key();
  action.uid = pod.uid;
  action.stage = stage;
  action.failure_reason = "FailedDelete";
  note("SuccessfulDelete", "Deleted pod: " + pod.name);
  --active_count;
  if (pod.is_ready) --ready;
  if (!pod.node_name.empty()) ++terminating;
}

void Context::release(const BatchPodView& pod, int stage) {
  if (!pod.is_tracked) return;
  Json others = Json::array();
  for (const std::string& finalizer : pod.other_finalizers) others.push_back(finalizer);
  if (others.empty()) others = nullptr;
  kube::Action& action = plan.actions.emplace_back();
  action.verb = kube::Action::Verb::kMergePatch;
  action.resource = kube::kPods;
  action.key = pod.key();
  action.stage = stage;
  action.body = Json::object(
      {{"metadata", Json::object({{"uid", pod.uid}, {"finalizers", std::move(others)}})}});
}

void Context::fail(std::string_view reason, std::string message) {
  verdict = Verdict{false, std::string(reason), std::move(message), false};
}

void Context::succeed(std::string_view reason, std::string message) {
  verdict = Verdict{true, std::string(reason), std::move(message), false};
}

bool Context::set_condition(std::string_view type, bool is_true, std::string_view reason,
                            std::string_view message) {
  Json condition = make_condition(type, is_true, reason, message, observed.now);
  Json::Array conditions = status.get_array("conditions");
  const auto known = std::find_if(conditions.begin(), conditions.end(), [type](const Json& one) {
    return one.get_string("type") == type;
  });
  if (known == conditions.end()) {
    if (!is_true) return false;
    conditions.push_back(std::move(condition));
  } else if (known->get("status") == condition.get("status") &&
             known->get_string("reason") == reason && known->get_string("message") == message) {
    return false;
  } else {
    *known = std::move(condition);
  }
  status.set("conditions", std::move(conditions));
  return true;
}

void Context::report(std::string_view type, std::string_view reason, std::string_view message) {
  kube::PlannedEvent& event = plan.events.emplace_back();
  event.type = type;
  event.reason = reason;
  event.message = message;
}

void Context::note(std::string_view reason, std::string message) {
  report("Normal", reason, message);
  plan.events.back().time = kube::PlannedEvent::Time::kAfterActions;
}

}  // namespace trainer::batch
