// A node is started with these options, and describes itself.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/meta.hh"

namespace trainer {

struct NodeOptions {
  std::filesystem::path state;      // absolute; pods are below it
  std::string name = "local";       // the name of the Node object
  std::optional<int> tier;          // 1, 2 or 3 (tiers.hh); nullopt: the best that there is
  std::vector<std::string> mounts;  // "DIRECTORY:/PATH", in all containers
  std::string working_dir;          // used by containers that state none; empty: one for each pod
  std::map<std::string, std::string> capacity;  // the node's capacity, instead of what is found
  kube::StringMap environment;  // pods begin with this environment; empty: that of this process
  std::vector<std::string> shim = {"/proc/self/exe", "shim"};  // run_shim(), as a command
  std::function<void(std::string_view)> on_note;               // sentences for a log; may be empty
  // The agent looks at this interval for tokens that expire soon; a token lives ten minutes or
  // more.
  std::chrono::milliseconds token_check{30'000};
  NodeOptions() {}
};

struct NodeStatus {
  int tier = 3;
  std::vector<std::string> notices;  // the reasons why there is no better tier
  std::string path;                  // PATH of containers that do not set it
};

}  // namespace trainer
