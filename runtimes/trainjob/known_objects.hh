// The objects that the plan of a TrainJob reads by name: the snapshot of its runtime, the runtime,
// and dependent objects. None of them is watched, so each function says also when an object that
// was read before has to be read again. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kube/model/named_objects.hh"
#include "runtimes/trainjob/observed.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"

namespace trainer {

// Returns whether an object of another owner is in the way, or an object is missing, by the reason
// of the status. No watch shows when that changes, so each reconcile reads the objects again.
bool is_blocked_by_objects(const TrainJobStatus& status);

std::string snapshot_name(std::string_view job_name);
kube::NamedObject snapshot_object(const TrainJob& job);
// Returns whether the object of this name is the job's snapshot_object().
bool is_snapshot(const TrainJob& job, const kube::Resource& resource, std::string_view name);
const kube::Resource& runtime_resource(const TrainJob& job);
kube::NamedObject runtime_object(const TrainJob& job);

// The stamp of what is read now.
kube::ReadStamp stamp_of(const TrainJobObserved& observed);

// nullptr: it has to be read. A job that nothing has reconciled yet has no snapshot, and that is
// known without a read: if there is one nevertheless, its creation conflicts, and then it is read.
const kube::ReadObject* known_snapshot(const TrainJobObserved& observed);
// nullptr: it has to be read. A runtime is read again in each reconcile that needs it: it may have
// been applied just before its job.
const kube::ReadObject* known_runtime(const TrainJobObserved& observed);
// nullptr: it has to be read.
const kube::ReadObject* known_dependent(const TrainJobObserved& observed,
                                        const kube::Resource& resource, std::string_view name);
// Returns whether a dependent object may be used in the form in which it was read.
bool is_dependent_current(const TrainJobObserved& observed, const kube::ReadObject& read);

// The part of a dependent object that is kept. `is_owned`: its controller is the job. A whole
// object is kept to be compared with a later plan. Nothing is kept of a Secret, and of an object of
// another owner: such an object may be large, and keys are not kept.
kube::Json trim_dependent(const kube::Resource& resource, bool is_owned, kube::Json object);

// Returns the text of a runtime or of a snapshot; null if the object has none.
std::shared_ptr<const RuntimeSnapshot> content_of(const kube::ReadObject& read);

}  // namespace trainer
