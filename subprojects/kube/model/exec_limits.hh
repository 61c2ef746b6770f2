// What the kernel of a node takes when it starts a process. A value above these limits passes the
// API server, and then no container that has it can start, however often it is tried.
#pragma once

#include <cstddef>
#include <string_view>

namespace kube {

// Linux takes no argument and no environment variable that is longer, its final NUL included
// (MAX_ARG_STRLEN in include/uapi/linux/binfmts.h: 32 pages of 4 KiB). execve() then fails with
// E2BIG, "argument list too long".
inline constexpr std::size_t kMaxExecStringBytes = 128UL * 1024;

// How many bytes a word of a command, or one of its arguments, takes.
constexpr std::size_t exec_bytes(std::string_view word) {
  return word.size() + 1;
}

// How many bytes an environment variable takes: NAME=VALUE and a NUL.
constexpr std::size_t exec_bytes(std::string_view name, std::string_view value) {
  return name.size() + 1 + value.size() + 1;
}

}  // namespace kube
