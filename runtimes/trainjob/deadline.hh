// spec.activeDeadlineSeconds and spec.ttlSecondsAfterFinished (Kubeflow Trainer,
// pkg/controller/trainjob_controller.go), by default those of the runtime's runPolicy, which the
// status keeps. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "api/trainjob.hh"
#include "kube/model/time.hh"

namespace trainer {

inline constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";

// When activeDeadlineSeconds run out: counted from creation or from the last resume. nullopt
// without a limit or while suspended. The job fails strictly after this instant.
std::optional<kube::Time> deadline_of(const TrainJob& job, const TrainJobStatus& status);
// Whether the job has failed by its deadline, so that its JobSet must go.
bool is_past_deadline(const TrainJobStatus& status);

// When a finished job is to be deleted; nullopt for one that is not finished or has no time to
// live.
std::optional<kube::Time> expiry_of(const TrainJob& job, const TrainJobStatus& status);

}  // namespace trainer
