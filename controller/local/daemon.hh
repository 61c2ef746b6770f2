// `trainer local up` runs an API server, the control loops and a node in one process.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainer {

struct LocalOptions {
  std::filesystem::path state;  // the state directory
  bool has_node = true;         // false: pods are not run
  bool has_controller = true;   // false: another controller reconciles TrainJobs and JobSets
  std::optional<int> tier;      // the tier of the node; nullopt: the best that this machine offers
  std::vector<std::string> mounts;  // "DIR:/PATH", in every pod
  // The capacity of the Node: it replaces the machine's.
  std::map<std::string, std::string> capacity;
  std::chrono::seconds idle{600};  // it exits after this time without work; 0: never
  std::string audit;               // the file of the audit log; empty: none
};

// Serves until SIGTERM or SIGINT (returns 0): then the running pods are stopped, and their state is
// stored. If it is killed the pods go on, and the next daemon takes them over. If it cannot start,
// or an error ends the control loops, it prints one sentence to standard error and returns 1.
// STATE/daemon.json exists while requests are served: {pid, address, version, unreadable, changes,
// notices, and for the node: tier, path}. STATE/kubeconfig stays.
int run_daemon(const LocalOptions& options);

}  // namespace trainer
