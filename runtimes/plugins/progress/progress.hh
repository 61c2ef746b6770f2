// The ConfigMap by which pods that report their progress trust the status server. Pure.
#pragma once

#include <string>

#include "api/trainjob.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer::pipeline {

// Whether pods of a JobSet have the volume with the CA: those that were built without reports do
// not.
bool reports_progress(const kube::Json& jobset);

// Its dependent_name().
std::string progress_ca_name(const TrainJob& job);
// "JOB-tls-config", with `options.status_server_ca`.
DependentObject progress_ca(const TrainJob& job, const PipelineOptions& options);

}  // namespace trainer::pipeline
