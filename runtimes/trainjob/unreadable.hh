// Some objects cannot be read: they were stored while their CRD allowed more, or by an older
// version. Pure.
#pragma once

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/plan.hh"

namespace trainer {

// Reports once on the TrainJob why nothing happens for it: with status.reason "Unreadable" and an
// event. Its children stay as they are. `object` is any JSON object with metadata. A job that has
// ended keeps its status, and one that is being deleted gets none.
kube::Plan plan_unreadable(const kube::Json& object, const kube::FieldErrors& errors);

}  // namespace trainer
