// The status and the events of a pod, made from the report of its shim (status.json). Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer::node {

struct StatusFacts {
  std::string host_address;
  std::string pod_address;
  // Of containers with a readiness probe: whether it has succeeded.
  std::map<std::string, bool, std::less<>> is_ready;
  // When spec.activeDeadlineSeconds run out; nullopt: never, or the pod has no startTime yet.
  std::optional<kube::Time> deadline = {};
  bool is_late = false;  // they ran out, and it was asked to end for it
};

// Of a pod that its spec.activeDeadlineSeconds has ended, as kubelet says it.
inline constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";
inline constexpr std::string_view kActiveForTooLong =
    "Pod was active on the node longer than the specified deadline";
// How long after status.startTime a pod may run; nullopt: without end.
std::optional<std::chrono::seconds> active_deadline_of(const kube::Json& pod);

// The members of status that the node writes; conditions of others are kept. `report`: the shim's
// (shim.hh), null before there is one.
kube::Json pod_status(const kube::Json& pod, const kube::Json& report, const StatusFacts& facts,
                      kube::Time now);
// Of a pod that does not run (yet): all its containers wait, with this reason.
kube::Json waiting_status(const kube::Json& pod, std::string_view reason, std::string_view message,
                          const StatusFacts& facts, kube::Time now);
// Of a pod that never runs.
kube::Json refused_status(const kube::Json& pod, std::string_view reason, std::string_view message,
                          const StatusFacts& facts, kube::Time now);
// The report for a shim that has ended without a last one: containers that ran were killed.
kube::Json report_of_killed(kube::Json report, kube::Time now);

struct PodEvent {
  std::string_view type;
  std::string_view reason;
  std::string message;
};
// What has become of the containers since an earlier report.
std::vector<PodEvent> events_of(const kube::Json& before, const kube::Json& report);

// A merge patch of the pod that sets what is different in its status; null: nothing is.
kube::Json status_patch(const kube::Json& pod, const kube::Json& status);

}  // namespace trainer::node
