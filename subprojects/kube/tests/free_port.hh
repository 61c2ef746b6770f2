// A port of loopback for a server whose configuration has to name it.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>

#include "kube/client/task.hh"

namespace kube {

// The port is below the range from which the kernel picks ports by itself, so that no other test
// gets it before the server listens.
inline std::uint16_t free_port() {
  static std::uint16_t next = static_cast<std::uint16_t>(10'000 + getpid() * 16L % 20'000);
  const asio::ip::tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
  for (;; ++next) {
    asio::io_context io;
    asio::ip::tcp::acceptor acceptor(io, any.protocol());
    boost::system::error_code error;
    acceptor.bind({any.address(), next}, error);
    if (!error) return next++;
  }
}

}  // namespace kube
