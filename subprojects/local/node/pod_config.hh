// A shim runs this: a pod as processes. The agent writes it and the shim reads it; both are the
// same version of this program. Pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace trainer::node {

// The tier says which parts of a container this machine can give to a process of an ordinary user.
enum class Tier {
  kNamespaces = 1,  // files, names and ports of its own
  kPorts = 2,       // ports of its own; the host's files and names
  kPlain = 3,       // nothing
};

struct Mount {
  std::string source;  // a directory or file of the host
  std::string target;  // an absolute path
  bool is_read_only = false;
  std::string sub_path = {};  // the mounted part of the source; empty: all of it
  kube::Json unknown = {};    // members that describe() does not name
  template <class D>
  static void describe(D& d);
  friend bool operator==(const Mount&, const Mount&) = default;
};

struct ContainerConfig {
  std::string name;
  std::string image;              // used for the status only
  std::vector<std::string> argv;  // at least the program
  std::vector<std::string> env;   // "NAME=VALUE", each name once
  std::string working_dir;        // empty: the pod's scratch directory
  std::vector<Mount> mounts;
  std::string termination_path;       // the program writes its last message to this path
  bool has_logs_for_message = false;  // FallbackToLogsOnError
  kube::Json unknown = {};            // members that describe() does not name
  template <class D>
  static void describe(D& d);
  friend bool operator==(const ContainerConfig&, const ContainerConfig&) = default;
};

// This is an emptyDir in memory: a directory of the pod where the shim mounts a tmpfs.
struct MemoryVolume {
  std::string path;
  std::int64_t size = 0;    // bytes; 0: no limit
  kube::Json unknown = {};  // members that describe() does not name
  template <class D>
  static void describe(D& d);
  friend bool operator==(const MemoryVolume&, const MemoryVolume&) = default;
};

struct PodConfig {
  std::string ns;
  std::string name;
  std::string uid;
  std::string hostname;
  std::string address;  // the address of its ports, in 127.0.0.0/8; empty: it has the host's ports
  bool has_network = false;  // its ports are in the network of pods (network.hh)
  Tier tier = Tier::kPlain;
  std::string restart_policy = "Never";
  std::optional<std::int64_t> run_as_user;
  std::optional<std::int64_t> run_as_group;
  std::vector<MemoryVolume> memory_volumes;
  std::vector<ContainerConfig> init_containers;  // one after the other
  std::vector<ContainerConfig> containers;       // together
  kube::Json unknown = {};                       // members that describe() does not name
  template <class D>
  static void describe(D& d);
  friend bool operator==(const PodConfig&, const PodConfig&) = default;
};

// Returns whether a container mounts this folder, or one in it.
bool mounts_below(const PodConfig& config, const std::filesystem::path& folder);

kube::Json to_json(const PodConfig& config);
PodConfig read_pod_config(const kube::Json& value);

// Processes of a pod are found by this variable: its value is the pod's uid.
inline constexpr std::string_view kPodMarker = "TRAINER_POD_UID";

// These are the files of a pod's directory.
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kStatusFile = "status.json";  // written by the shim alone
inline constexpr const char* kLockFile = "lock";           // held while the shim lives
inline constexpr const char* kHostsFile = "hosts";
inline constexpr const char* kNsswitchFile = "nsswitch.conf";
inline constexpr const char* kScratch = "scratch";  // the working directory
inline constexpr const char* kVolumes = "volumes";
inline constexpr const char* kLogs = "logs";
inline constexpr const char* kRoot = "root";  // the shim builds the containers' tree here
// Returns the file to which a container's program writes its last message (terminationMessagePath).
inline std::filesystem::path termination_file(const std::filesystem::path& pod,
                                              std::string_view container) {
  return pod / "termination" / container;
}
// The shim gets the lock as this descriptor.
inline constexpr int kLockDescriptor = 3;

}  // namespace trainer::node
