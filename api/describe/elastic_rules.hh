// These rules of the whole object say what of a TrainJob's spec.trainer may change. They read its
// stored status, so that they hold for the subresource scale and without webhooks, too.
#pragma once

#include "api/describe/attributes.hh"

namespace trainer::wire {

// Nothing but the number of nodes of an elastic job may change. In any other job a part that is
// added or removed is no change, as in a rule of the part itself.
Rule trainer_stays();

// The number of nodes of an elastic job stays within its bounds.
Rule nodes_stay_within_bounds();

// A job that has run, and is not elastic, keeps the part: the subresource scale would add it, and
// no webhook of the job sees that.
Rule trainer_is_not_added();

}  // namespace trainer::wire
