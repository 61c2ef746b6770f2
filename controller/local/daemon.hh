// `trainer local up`: an API server, the control loops and a node in one process.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainer {

struct LocalOptions {
  std::filesystem::path state;      // the state directory
  bool has_node = true;             // false: pods are not run
  bool has_controller = true;       // false: another controller drives TrainJobs and JobSets
  std::optional<int> tier;          // of the node; nullopt: the best that this machine offers
  std::vector<std::string> mounts;  // "DIR:/PATH", in every pod
  std::map<std::string, std::string> capacity;  // of the node, instead of what it finds
  std::chrono::seconds idle{600};               // it ends after so long without work; 0: it stays
  std::string audit;                            // the file of the audit log; empty: none
};

// Serves until SIGTERM or SIGINT (returns 0): then the pods that run are stopped, and their state
// is stored. Killed, it leaves them running, and the next one takes them over. A start that is
// refused is one sentence on standard error, and 1; so is an error that ends the control loops.
// STATE/daemon.json is there while requests are served: {pid, address, version, tier, notices,
// path}. STATE/kubeconfig stays.
int run_daemon(const LocalOptions& options);

}  // namespace trainer
