// An MPI launcher starts once DNS knows the hosts of its hostfile. Pure.
#pragma once

#include "api/jobset.hh"

namespace trainer::mpi {

// `mpirun` asks for each host once, and for its own name within milliseconds of the pod's start,
// when DNS does not know it yet: it then takes itself for another host and fails. So a pod that
// mounts the hostfile of a TrainJob gets an init container, which waits until the names resolve. It
// has the image and the rights of the container with the mount. It never fails: after two minutes,
// or if the image cannot resolve names, mpirun decides.
//
// It is added to the Job, not to the JobSet: so the JobSet that Kueue counts and that upstream
// compares does not change, and running JobSets do not either. A runtime that has an init container
// `wait-for-hosts` keeps its own. Nothing is added if names cannot resolve before a pod is ready.
void wait_for_hosts(kube::Json& job, const JobSet& jobset);

}  // namespace trainer::mpi
