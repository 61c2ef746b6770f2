// What the pods of a data cache ask for, where the JobSet exists already. Pure.
#pragma once

#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

// As build(). No JobSet can change its number of pods and their resources, so the cache's are those
// of `stored`, where they are the runtime's: what the job says of them is in `ignored`. Errors,
// too, where they are not the runtime's, and Built would ignore what the job says of them. `stored`
// is the JobSet, or nullptr.
tl::expected<Built, kube::FieldErrors> build_beside(const TrainJob& job, const Runtime& runtime,
                                                    const PipelineOptions& options,
                                                    const kube::Json* stored);

}  // namespace trainer
