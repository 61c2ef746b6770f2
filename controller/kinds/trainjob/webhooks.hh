// The admission of TrainJobs and their runtimes is made here.
#pragma once

#include "controller/admission/webhook.hh"
#include "runtimes/jobset/gates.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer {

// Names, paths and rules are upstream's (Kubeflow Trainer, pkg/webhooks and its manifests).
// Upstream has no mutating webhook for runtimes: this one converts fields of v2.0 and v2.1.
AdmissionRegistration trainjob_admission(const PipelineOptions& options,
                                         const jobset::Gates& gates);

}  // namespace trainer
