// Puts a new socket in the place of one of another process, as if the process had made it at first.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>

#include <cstdint>

#include "local/node/files.hh"

namespace trainer::node {

// This is a call of bind() or connect() that waits for an answer, and the socket that it is about.
struct WaitingCall {
  int listener = -1;  // the listener of the seccomp filter
  std::uint64_t id = 0;
  pid_t process = -1;
  int socket = -1;  // its number in the process
};

// Gives `to` the options and flags of `from` that a program may have set.
void copy_options(const Fd& from, const Fd& to);

// Makes `fresh` a member of the epoll set, as the descriptor `number` of the process that has the
// set. Descriptors of this process do not change, whatever their numbers. Returns false, by errno,
// if the set does not have it.
bool add_to_set(const Fd& set, const Fd& fresh, int number, epoll_event event);

// The process has `fresh` from now on, with the flags of the descriptor, and in all epoll sets that
// have the old one. Other descriptors of the old one, which dup() has made, stay. Returns false if
// it was not possible, and the process keeps its own socket; the caller closes `fresh`.
bool replace_socket(const WaitingCall& call, const Fd& fresh);

}  // namespace trainer::node
