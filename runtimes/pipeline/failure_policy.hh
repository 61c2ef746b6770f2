// The failure policy of the job and of its runtime's runPolicy in the JobSet. Pure.
#pragma once

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Over the template's, member by member; the job's own goes last. Where either asks for anything,
// the JobSet also names what a restart keeps (docs/decisions/0050). Without them nothing changes.
void merge_failure_policy(Draft& draft);

}  // namespace trainer::pipeline
