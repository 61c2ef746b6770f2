// The metadata of a job says how the job ended. Backups keep metadata and lose the status: without
// this, a restored job that had finished would run again. Pure; all kinds of jobs use it.
#pragma once

#include <optional>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/plan.hh"

namespace trainer {

// The marker is an annotation: a JSON object with the job's name and the members of its status that
// say how it ended. A copy under another name is another job, and runs.
inline constexpr std::string_view kFinishedMarkerKey = "trainer.kubeflow.org/finished";

// Returns the write that marks a finished job; nullopt if it has a mark. `status` is the stored
// one.
std::optional<kube::Action> mark_finished(const kube::Resource& resource,
                                          const kube::ObjectMeta& meta, const kube::Json& status);

// Returns the status that the mark of this job holds; nullopt without one. Any user may have
// written it.
std::optional<kube::Json> marked_status(const kube::ObjectMeta& meta);

// The event of a job whose status was restored from its mark.
kube::PlannedEvent restored_event();

}  // namespace trainer
