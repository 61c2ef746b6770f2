// `trainer controller`: everything put together.
#pragma once

#include "controller/config/options.hh"

namespace trainer {

// Runs until SIGTERM or SIGINT (0), or until it cannot go on (1): unusable options or kubeconfig,
// or the lost leadership, after which nothing may be written any more. Says on standard error what
// happened.
int run_controller(const ControllerOptions& options);

}  // namespace trainer
