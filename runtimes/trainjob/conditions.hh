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

// Suspended follows spec.suspend; a job that never was suspended has no such condition, for the SDK
// takes any as "not running".
void set_suspended(TrainJobStatus& status, bool is_suspended, kube::Time now);

// jobsStatus one to one, in the JobSet's order (where there are more than the status has a place
// for, active ones first); Complete and Failed unchanged, with their times. A job that is finished
// keeps its terminal condition, also when its JobSet changes later.
void mirror_jobset(TrainJobStatus& status, const JobSet& jobset, kube::Time now);

// The restarts of a JobSet that count, of those allowed: "1/3", and behind a + those that do not
// count, where disruptions have a budget: "1/3+0/2". "" where no failure policy of the job or of
// its runtime's runPolicy asks for restarts.
std::string restart_budget(const JobSet& jobset);

void fail(TrainJobStatus& status, std::string_view reason, std::string message, kube::Time now);

}  // namespace trainer
