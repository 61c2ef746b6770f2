// Other subcommands use the daemon of local mode by this: they check whether it runs, start it and
// end it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "local/node/owned.hh"

namespace trainer {

// This message is about a daemon that was started with --no-node.
inline constexpr std::string_view kNoNode = "without a node: pods stay Pending";

// This message is shown at the first start.
inline constexpr std::string_view kNoSandbox =
    "Pods are processes of yours, with your rights: there is no sandbox. Who can read the "
    "kubeconfig can start them.\n";

// Returns $XDG_STATE_HOME/trainer, else ~/.local/state/trainer.
std::filesystem::path default_local_state();

// Returns $VIRTUAL_ENV/bin, if it is set and not in $PATH, and then $PATH.
std::string callers_path();

// The daemon writes this into daemon.json once it serves requests.
struct DaemonStatus {
  pid_t pid = 0;
  std::string address;  // "https://127.0.0.1:PORT"
  std::string version;
  std::optional<std::int64_t> tier;  // nullopt: it has no node
  std::vector<std::string> notices;  // the features that this machine does not offer
  // The changes that its start made, for the command that has started it.
  std::vector<std::string> changes;
  std::vector<std::string> unreadable;  // a sentence for each object that its start set aside
  std::string path;                     // $PATH of pods
  kube::Json json;                      // all of it except the changes
};

// Concurrency: one thread. All functions block. start() blocks as long as the daemon needs to be
// ready: 100 ms as a rule and 30 s at most.
class LocalDaemon {
 public:
  explicit LocalDaemon(std::filesystem::path state);

  // It is called before the first use of the files in the state. Errors: another user could have
  // written them.
  kube::Result<void> check() const;
  std::string kubeconfig() const { return state_ / "kubeconfig"; }
  // Returns true before the first start.
  bool is_new() const { return !has_file("kubeconfig"); }
  // Returns whether the last daemon was killed, if none is up. A daemon that was asked to end
  // removes the file.
  bool was_killed() const { return has_file("daemon.json"); }
  // Returns nullopt if none is up.
  std::optional<DaemonStatus> status() const;
  // Starts this program again as `local up --foreground OPTION...`, in a session of its own, and
  // waits until it serves. If a daemon runs already, it returns the status of that one. Errors: the
  // last lines of the new daemon's log.
  kube::Result<DaemonStatus> start(const std::vector<std::string>& options) const;
  // Starts a daemon with the options of the last start.
  kube::Result<DaemonStatus> restart() const;
  // Returns the options of the last start, in the form of start(). Empty says that they are not
  // known.
  std::vector<std::string> options() const;
  // The running daemon does not end by itself any more, and is started again with these options.
  kube::Result<void> stay(const std::vector<std::string>& options) const;
  // Sends SIGTERM and waits for the end. Errors: the daemon has not ended within a minute.
  kube::Result<void> stop(const DaemonStatus& running) const;

 private:
  kube::Result<DaemonStatus> spawn(const node::OwnedDirectory& folder,
                                   const std::vector<std::string>& options) const;
  static kube::Result<void> keep_options(const node::OwnedDirectory& folder,
                                         const std::vector<std::string>& options);
  static std::string reason_of_end(const node::OwnedDirectory& folder, int wait_status);
  bool has_file(const char* name) const;

  std::filesystem::path state_;  // absolute
};

}  // namespace trainer
