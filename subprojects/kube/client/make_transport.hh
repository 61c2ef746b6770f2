// A process reaches the API server by its transports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "kube/client/transport.hh"

namespace kube {

// Each thread has its own transport, and so has the Lease.
using MakeTransport = std::function<std::unique_ptr<Transport>(boost::asio::io_context& io,
                                                               const TransportLimits& limits)>;

}  // namespace kube
