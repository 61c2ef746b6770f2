// What a node is started with, and what it says of itself.
#pragma once

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
  std::string name = "local";       // of the Node object
  std::optional<int> tier;          // 1, 2 or 3 (tiers.hh); nullopt: the best that there is
  std::vector<std::string> mounts;  // "DIRECTORY:/PATH", in all containers
  std::string working_dir;          // of containers that state none; empty: one for each pod
  std::map<std::string, std::string> capacity;  // of the node, instead of what is found
  kube::StringMap environment;                  // that pods begin with; empty: that of this process
  std::vector<std::string> shim = {"/proc/self/exe", "shim"};  // run_shim(), as a command
  std::function<void(std::string_view)> on_note;               // sentences for a log; may be empty
  NodeOptions() {}
};

struct NodeStatus {
  int tier = 3;
  std::vector<std::string> notices;  // why there is no better tier
  std::string path;                  // PATH of containers that do not set it
};

}  // namespace trainer
