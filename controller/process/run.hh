// This is `trainer controller`.
#pragma once

#include "controller/config/options.hh"

namespace trainer {

// Runs until SIGTERM or SIGINT (returns 0), or until an error that ends the process (1): unusable
// options or kubeconfig, or lost leadership, after which nothing may be written.
int run_controller(const ControllerOptions& options);

// Raises the soft limit of open descriptors to the hard limit; a Go program does so at its start.
// (The soft limit is low only for programs that use select().) Returns false if the system refuses.
bool raise_descriptor_limit();

}  // namespace trainer
