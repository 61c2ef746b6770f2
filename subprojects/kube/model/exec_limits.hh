// The kernel of a node limits the texts of a new process. The API server accepts a value above
// these limits, and then no container that has it can start, however often it is tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"

namespace kube {

// Linux accepts no argument and no environment variable that is longer, its final NUL included
// (MAX_ARG_STRLEN in include/uapi/linux/binfmts.h: 32 pages of 4 KiB). execve() then fails with
// E2BIG, "argument list too long".
inline constexpr std::size_t kMaxExecStringBytes = 128UL * 1024;

// Returns how many bytes a word of a command, or one of its arguments, takes.
constexpr std::size_t exec_bytes(std::string_view word) {
  return word.size() + 1;
}

// Returns how many bytes an environment variable takes: NAME=VALUE and a NUL.
constexpr std::size_t exec_bytes(std::string_view name, std::string_view value) {
  return name.size() + 1 + value.size() + 1;
}

// With this string of a pod no process can be started.
struct LongExecString {
  std::string_view list;  // "containers" or "initContainers"
  std::size_t container;  // its index there
  std::string_view name;  // the container's name
  std::string_view hook;  // "", or whose command it is: "livenessProbe", "lifecycle.preStop"
  std::string_view list_of_strings;  // "command", "args" or "env"
  std::size_t index;                 // in that list
  std::string_view variable;         // its name; "" for a word
  // The string will have at least this many bytes, once $(NAME) is replaced by the values in the
  // pod itself.
  std::int64_t bytes;
  bool is_expanded;  // it is not too long before references are replaced

  // Returns the path below the container: "livenessProbe.exec.command[2]", "env[1].value".
  std::string path() const;
  // Returns "variable A of container node has 140000 bytes, and Linux ...", and how to change it.
  // `whose` comes before the verb: ", which comes from the runtime,", or "".
  std::string text(std::string_view container_title, std::string_view whose) const;
};

// Finds the words of all commands and arguments, including those of probes and lifecycle hooks, and
// all variables; the first `most` of them. The texts are those of the pod's spec. Nothing is built.
std::vector<LongExecString> find_long_exec_strings(const Json& pod_spec, std::size_t most);

}  // namespace kube
