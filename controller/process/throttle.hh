// This is the request rate limit of the configuration file (`clientConnection`).
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "kube/client/transport.hh"

namespace trainer {

// Puts a token bucket of `burst` requests, filled at `qps`, in front of another transport. Watches
// are not limited: each is one request in minutes.
std::unique_ptr<kube::Transport> throttle(kube::asio::io_context& io,
                                          std::unique_ptr<kube::Transport> transport, double qps,
                                          int burst);

}  // namespace trainer
