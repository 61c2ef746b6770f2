// A process reaches the API server by its transports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "kube/client/transport.hh"

namespace trainer {

// Each thread has its own transport, and so has the Lease.
using MakeTransport = std::function<std::unique_ptr<kube::Transport>(
    boost::asio::io_context& io, const kube::TransportLimits& limits)>;

}  // namespace trainer
