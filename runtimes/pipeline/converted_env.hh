// Environment variables of a TrainJob are written in upstream's form (Kubeflow Trainer,
// pkg/runtime/framework/plugins).
#pragma once

#include "kube/model/json.hh"

namespace trainer::pipeline {

// A core/v1 EnvVar of the job's trainer or of one of its initializers, rebuilt member by member as
// upstream's typed conversion does, so that the JobSet is the same for a client that compares it.
// Env of runtimes and patches is not changed.
//  - A value is always written, also "", and never beside a source.
//  - fieldRef loses its apiVersion; resourceFieldRef always has containerName and a canonical
//    divisor, "0" where the job says none.
//  - Other sources, such as fileKeyRef, are not changed; upstream loses them, and the API
//    server refuses the pod.
kube::Json converted_env(const kube::Json& variable);

}  // namespace trainer::pipeline
