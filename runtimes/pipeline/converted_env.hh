// Environment variables of a TrainJob as upstream hands them on (trainer-contract 4.3, "Env
// conversion").
#pragma once

#include "kube/model/json.hh"

namespace trainer::pipeline {

// A core/v1 EnvVar of the job's trainer or of one of its initializers, rebuilt member by member as
// upstream's typed conversion does, so that the JobSet is the same to whoever compares it. Env of
// runtimes and patches is carried as it stands.
//  - A value is always written, also "", and never beside a source.
//  - fieldRef loses its apiVersion; resourceFieldRef always has containerName and a canonical
//    divisor, "0" where the job says none.
//  - Other sources, such as fileKeyRef, are carried as they stand; upstream loses them, and the API
//    server refuses the pod.
kube::Json converted_env(const kube::Json& variable);

}  // namespace trainer::pipeline
