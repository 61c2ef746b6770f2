// The status and the events of a pod are made from the report of its shim (status.json). Pure.
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
  // A container with a readiness probe has an entry: whether the probe has succeeded.
  std::map<std::string, bool, std::less<>> is_ready;
  // spec.activeDeadlineSeconds run out at this time; nullopt: never, or the pod has no startTime
  // yet.
  std::optional<kube::Time> deadline = {};
  bool is_late = false;  // the deadline has passed, and it was asked to end for it
};

// A pod that its spec.activeDeadlineSeconds has ended has this reason, which is kubelet's.
inline constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";
inline constexpr std::string_view kActiveForTooLong =
    "Pod was active on the node longer than the specified deadline";
// Returns how long after status.startTime a pod may run; nullopt: without end.
std::optional<std::chrono::seconds> active_deadline_of(const kube::Json& pod);

// Returns the members of status that the node writes; conditions of others are kept. `report` is
// the shim's (shim.hh), null before there is one.
kube::Json pod_status(const kube::Json& pod, const kube::Json& report, const StatusFacts& facts,
                      kube::Time now);
// Returns the status of a pod that does not run (yet): all its containers wait, with this reason.
kube::Json waiting_status(const kube::Json& pod, std::string_view reason, std::string_view message,
                          const StatusFacts& facts, kube::Time now);
// Returns the status of a pod that never runs.
kube::Json refused_status(const kube::Json& pod, std::string_view reason, std::string_view message,
                          const StatusFacts& facts, kube::Time now);
// Returns the report for a shim that has ended without a last one: containers that ran were killed.
kube::Json report_of_killed(kube::Json report, kube::Time now);

struct PodEvent {
  std::string_view type;
  std::string_view reason;
  std::string message;
};
// Returns what has happened to the containers since an earlier report.
std::vector<PodEvent> events_of(const kube::Json& before, const kube::Json& report);

// Returns a merge patch of the pod that sets what is different in its status; null: nothing is.
kube::Json status_patch(const kube::Json& pod, const kube::Json& status);

}  // namespace trainer::node
