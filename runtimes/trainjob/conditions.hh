// The part of a TrainJob's status that upstream has: conditions and jobsStatus
// (Kubeflow Trainer, pkg/controller/trainjob_controller.go). Pure.
#pragma once

#include <string>
#include <string_view>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/time.hh"

namespace trainer {

inline constexpr std::string_view kSuspended = "Suspended";
inline constexpr std::string_view kComplete = "Complete";
inline constexpr std::string_view kFailed = "Failed";

// The terminal condition that is True, or nullptr. Failed goes before Complete, as for the SDK.
const kube::Condition* find_terminal(const TrainJobStatus& status);
bool is_finished(const TrainJobStatus& status);

// Suspended follows spec.suspend. A job that was never suspended has no such condition, since the
// SDK takes any such condition as "not running".
void set_suspended(TrainJobStatus& status, bool is_suspended, kube::Time now);

// The jobsStatus of the TrainJob are those of the JobSet, in its order (active ones first, if there
// are more than the status has room for). Complete and Failed are copied with their times. A
// finished job keeps its terminal condition, also when its JobSet changes later.
void mirror_jobset(TrainJobStatus& status, const JobSet& jobset, kube::Time now);

// Returns the counted restarts of a JobSet, of those allowed: "1/3". If disruptions have a budget,
// the restarts that do not count follow a +: "1/3+0/2". The result is "" if no failure policy of
// the job or of its runtime's runPolicy asks for restarts.
std::string restart_budget(const JobSet& jobset);

void fail(TrainJobStatus& status, std::string_view reason, std::string message, kube::Time now);

}  // namespace trainer
