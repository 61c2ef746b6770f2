// An MPI launcher starts once DNS knows the hosts of its hostfile. Pure.
#pragma once

#include "api/jobset.hh"

namespace trainer::mpi {

// `mpirun` asks for each host once, and for its own name within milliseconds of the pod's start,
// when DNS does not know it yet: it then takes itself for another host and fails. So a pod that
// mounts the hostfile of a TrainJob gets an init container, of the image and the rights of the
// container that mounts it, which waits until the names resolve. It never fails: after two minutes,
// or where the image cannot resolve names, mpirun decides.
//
// It is added to the Job, not to the JobSet: what Kueue counts and what upstream compares stays as
// it is, and so do JobSets that run already. A runtime that has an init container `wait-for-hosts`
// keeps its own. Nothing is added where names cannot resolve before a pod is ready.
void wait_for_hosts(kube::Json& job, const JobSet& jobset);

}  // namespace trainer::mpi
