// `trainer controller`.
#pragma once

#include "controller/config/options.hh"

namespace trainer {

// Runs until SIGTERM or SIGINT (returns 0), or until an error that ends the process (1): unusable
// options or kubeconfig, or lost leadership, after which nothing may be written.
int run_controller(const ControllerOptions& options);

}  // namespace trainer
