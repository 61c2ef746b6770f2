// This process holds one pod: `trainer shim DIRECTORY`. It starts the pod's containers, keeps their
// output and writes their states to status.json, also while no agent runs.
#pragma once

#include <string>
#include <vector>

namespace trainer {

// Runs the pod of a directory (pod_config.hh) to its end. SIGTERM stops it, with the seconds of
// grace as the signal's value (sigqueue), 30 without one; another one may shorten them. If it is
// killed, the pod's processes are killed with it. With the word "tiers" instead of a directory it
// prints which tiers the machine offers (tiers.hh). The result is an exit code.
int run_shim(const std::vector<std::string>& words);

}  // namespace trainer
