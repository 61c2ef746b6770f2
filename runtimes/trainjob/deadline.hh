// The limits are spec.activeDeadlineSeconds and spec.ttlSecondsAfterFinished (Kubeflow Trainer,
// pkg/controller/trainjob_controller.go). Their defaults are those of the runtime's runPolicy,
// which the status keeps. Pure.
#pragma once

#include <optional>

#include "api/trainjob.hh"
#include "kube/model/time.hh"

namespace trainer {

// The job fails strictly after this instant, when activeDeadlineSeconds run out. They are counted
// from creation or from the last resume. The result is nullopt without a limit or while the job is
// suspended.
std::optional<kube::Time> deadline_of(const TrainJob& job, const TrainJobStatus& status);
// Returns whether the job has failed by its deadline, so that its JobSet must go.
bool is_past_deadline(const TrainJobStatus& status);

// Returns when a finished job is to be deleted; nullopt if it is not finished or has no time to
// live.
std::optional<kube::Time> expiry_of(const TrainJob& job, const TrainJobStatus& status);

}  // namespace trainer
