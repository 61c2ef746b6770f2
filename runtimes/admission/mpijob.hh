// New MPIJobs of v1 are marked here, where another controller has those of v2beta1. New ones of
// v2beta1 get warnings.
#pragma once

#include "runtimes/admission/admission.hh"
#include "runtimes/mpijob/settings.hh"

namespace trainer {

// Writes the annotation of the version at which the job is created (views/created_version.hh). A
// job that is created at v1 with members of v2beta1 is one that was read at v1 and restored: it is
// marked as one of v2beta1, with a warning.
AdmissionAnswer stamp_mpijob(const AdmissionRequest& request);

// Allows each new job of v2beta1, as mpi-operator does, which has no webhook. Warns about what has
// no effect in it, and about what makes it invalid.
AdmissionAnswer review_mpijob(const AdmissionRequest& request, const mpijob::MPISettings& settings);

}  // namespace trainer
