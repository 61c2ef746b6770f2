// This is the one rule of the program about which resources are devices that a process can be bound
// to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace trainer::pipeline {

// This is one row of the rule, for all names that its pattern matches. If several rows match, the
// first one counts. docs/users/gpu-sharing.md prints the rows, and a test compares them.
struct DeviceRow {
  // The value says how many processes a row starts for a device, and whether they get its number.
  enum class Process {
    kNone,     // a share or a size, such as memory: no process
    kAuto,     // one process each; torchrun finds them itself ("auto")
    kNumbered  // one process each; torchrun does not find them, and gets their number
  };
  std::string_view pattern;  // "*" is any text, "?" any character; letters of both cases are equal
  Process process = Process::kNone;
  std::string_view source;  // the project that uses the name
};
std::span<const DeviceRow> device_rows();

// An admin adds these names or patterns, which come before the rows above.
struct DeviceRules {
  std::vector<std::string> counted;  // one process each, like kNumbered
  std::vector<std::string> ignored;  // no process; these come first
};

// Returns whether one process is started for each device.
bool is_accelerator(std::string_view resource, const DeviceRules& rules);

struct DeviceCount {
  std::int64_t number = 0;
  bool is_found_by_torchrun = true;  // all of them
};
// Counts the devices of a container, all kinds together: those it requests, else those it is
// limited to.
DeviceCount count_devices(const kube::Json& container, const DeviceRules& rules);
std::int64_t count_accelerators(const kube::Json& container, const DeviceRules& rules);

// The Python SDK counts devices by names of its own, and fails to read a container whose limits
// have none of them.
bool is_read_by_sdk(std::string_view resource);
// Returns "nvidia.com/gpu, ...", for messages.
std::string names_read_by_sdk();

}  // namespace trainer::pipeline
