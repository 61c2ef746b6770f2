// Puts a new socket in the place of one of another process, as if the process had made it at first.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "controller/node/files.hh"

namespace trainer::node {

// What bind() or connect() of a process waits for, and its socket.
struct WaitingCall {
  int listener = -1;  // of its seccomp filter
  std::uint64_t id = 0;
  pid_t process = -1;
  int socket = -1;  // its number there
};

// Gives `to` the options and flags of `from` that a program may have set.
void copy_options(const Fd& from, const Fd& to);

// The process has `fresh` from now on, with the flags of the descriptor, and in all epoll sets
// where the old one is. Other descriptors of the old one, which dup() has made, stay. False: it was
// not possible, and nothing is changed.
bool replace_socket(const WaitingCall& call, const Fd& fresh);

}  // namespace trainer::node
