// A server has these connections, and closes some of them when there are too many.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <list>

#include "kube/client/byte_stream.hh"
#include "kube/client/notifier.hh"

namespace kube {

struct ServerConnection {
  enum class Phase {
    kNew,        // no byte of a request yet
    kReading,    // a request is read, or its answer is written
    kHandled,    // a handler runs: it is not closed for others
    kStreaming,  // an answer without a known end is written: it is not closed for others either
    kIdle,       // the last answer is written
  };
  using Steady = std::chrono::steady_clock::time_point;
  asio::ip::address peer;
  Steady since{};  // the begin of the request or answer, or of the idle time
  Phase phase = Phase::kNew;
  std::size_t body_bytes = 0;    // the bytes reserved for the body that is read
  ByteStream* stream = nullptr;  // nullptr before and after it is open
  bool is_evicted = false;
  bool is_stranger = false;  // no known client has sent a request on it yet
  bool has_place = false;    // its bytes are read although it is a stranger's
  Notifier* turn = nullptr;  // wakes the session while it waits to be read

  bool is_unfinished() const { return phase == Phase::kNew || phase == Phase::kReading; }
  // A first request counts from when the connection was accepted, handshake included.
  void enter(Phase next, Steady now) {
    if (phase != Phase::kNew || next != Phase::kReading) since = now;
    phase = next;
  }
};

using ServerConnections = std::list<ServerConnection>;

// The server has run out of one of these: connections, memory for bodies, the number of strangers'
// connections that may wait to be read, or the number of those that are read.
enum class Scarce { kConnections, kBodyBytes, kWaiting, kPlaces };

// Finds the connection to close: the oldest of those that have been unfinished for `grace`, of the
// peer (address) that has the most of them, by number or by bytes. There may be too few connections
// left, none unfinished that long, and no more unfinished than idle. Then it is the connection that
// has been idle longest, of the peer with most idle ones. nullptr says that none may be closed yet.
// A client with proper requests finishes each within `grace`, so one that does not cannot take the
// connections of the others. With kWaiting it is the oldest stranger's connection that waits, and
// with kPlaces the oldest that has been read for `grace`, whether it is idle or not.
ServerConnection* find_victim(ServerConnections& connections, Scarce what,
                              ServerConnection::Steady now, Milliseconds grace);

// Returns how many connections of strangers are read (kPlaces), or wait to be read (kWaiting).
std::size_t count_strangers(const ServerConnections& connections, Scarce what);

// Returns how many connections, or bytes of bodies, are still held by connections that were closed
// to make room: these become free within a few turns of the event loop. A connection whose handler
// still runs does not count.
std::size_t held_by_evicted(const ServerConnections& connections, Scarce what);

}  // namespace kube
