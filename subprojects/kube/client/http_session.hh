// This is one connection of an HttpServer, and the state that all of them share. Internal to
// http_server.cc.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>

#include "kube/client/clock.hh"
#include "kube/client/connections.hh"
#include "kube/client/http_server.hh"
#include "kube/client/notifier.hh"
#include "kube/client/task_group.hh"
#include "kube/client/tls.hh"

namespace kube {

// The acceptor and all sessions share this. Every session holds it, so it outlives the HttpServer
// if a handler still runs.
struct ServerState {
  ServerState(asio::io_context& io, ServerOptions options, HttpServer::Handler handler);

  ServerOptions options;
  HttpServer::Handler handler;
  asio::ip::tcp::acceptor acceptor;
  SystemClock clock;
  Notifier changed;  // notified when a connection ends, becomes idle or gives back bytes
  ServerTls tls;
  ServerConnections connections;
  std::size_t body_bytes = 0;  // reserved by all connections
  bool is_stopping = false;
  TaskGroup tasks;

  // Does what HttpServer::stop() says.
  void stop();
  // Waits for a change. If a connection can make room, it is closed first, unless those that were
  // closed before it will give back what is `missing`.
  Task<void> make_room(Scarce what, std::size_t missing, Deadline deadline);
  // Finds the newest of the connections without a known client that wait to be read; nullptr: none
  // waits.
  ServerConnection* newest_waiting();
};

// Serves the requests of an accepted connection, one after the other, until it ends.
Task<void> run_session(std::shared_ptr<ServerState> state, asio::ip::tcp::socket socket);

}  // namespace kube
