// The part of the configuration that MPIJobs of v2beta1 have. Pure.
#pragma once

#include <string>

namespace trainer::mpijob {

// These settings are those of mpi-operator's flags.
struct MPISettings {
  // "" for none; "volcano" in any case; any other name means scheduler-plugins under that name.
  std::string gang_scheduler;
  std::string cluster_domain;  // the end of hosts' names; "" leaves names to the search path
};

}  // namespace trainer::mpijob
