// This part of a pod is needed to follow its logs. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/registration/command_hooks.hh"
#include "kube/model/json.hh"

namespace trainer {

struct LogContainer {
  std::string name;
  // The container was restarted this often; the server's log is that of the current run.
  std::int32_t restarts = 0;
  bool has_log = false;                   // it runs or has run
  bool is_ended = false;                  // its current run has ended
  std::optional<std::int64_t> exit_code;  // set if it has ended
  std::string reason;                     // set if it has ended
};

struct LogPod : PodPlace {
  std::string name;
  std::string ns;
  std::string uid;
  bool is_over = false;  // Succeeded or Failed: no container starts again
  bool is_gone = false;  // deleted
  // This is its grace period, if its deletion was requested.
  std::optional<std::chrono::seconds> ends_within;
  // This is why it failed, if its status says so: the node refused or evicted it. Otherwise it is
  // "": its containers say why.
  std::string failure;
  std::vector<LogContainer> containers;  // failed init containers first

  // Returns nullopt if the object has no place.
  static std::optional<LogPod> read(const kube::Json& pod, const LogsHook& hook);
  const LogContainer* find(std::string_view container) const;
  // Returns "[node-0]", "[node-1-0]" with several Jobs, "[node-0 #2]" in the second restart,
  // "[node-0 sidecar]" with several containers.
  std::string prefix(std::string_view container) const;
  friend bool operator<(const LogPod& a, const LogPod& b);
};

// Returns whether `--node N` selects this pod: initializers are not training nodes. If there are
// several Jobs, a node is one of them.
bool is_chosen(const LogPod& pod, const std::optional<std::int32_t>& node);

// This is path and query of one container's log.
struct LogQuery {
  bool is_followed = false;
  bool is_previous = false;               // the log of the run before the current one
  std::optional<std::string> since_time;  // RFC 3339; wins over the two below
  std::optional<std::int64_t> since_seconds;
  std::optional<std::int64_t> tail;
};
std::string log_path(const LogPod& pod, std::string_view container, const LogQuery& query);

}  // namespace trainer
