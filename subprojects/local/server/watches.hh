// These are the open watches of local mode's API.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "kube/client/clock.hh"
#include "kube/client/http_server.hh"
#include "kube/client/notifier.hh"
#include "kube/server/api.hh"
#include "kube/server/object_store.hh"

namespace trainer {

// Sends each change of the store to the watches that select it. For a slow client, at most
// `max_bytes` wait to be sent. Then its watch ends, like those of kube-apiserver, and the client
// watches again from the last version that it has seen. Concurrency: the thread of the store. It
// outlives every stream.
class Watches {
 public:
  Watches(kube::asio::any_io_executor executor, kube::Clock& clock,
          kube::server::ObjectStore& store, std::size_t max_bytes = 4U << 20);
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // Returns the body of the answer to a watch, to be sent once. The watch misses no change from now
  // on, however late the body is sent.
  kube::StreamBody open(kube::server::Watch watch);
  // Ends all watches, with a last bookmark for those that asked for bookmarks; one that is opened
  // later ends after its first lines.
  void stop();

 private:
  struct Open;
  void on_change(const kube::server::Change& change);
  kube::Task<void> send(std::shared_ptr<Open> open, kube::WriteBody write);

  kube::asio::any_io_executor executor_;
  kube::Clock& clock_;
  kube::server::ObjectStore& store_;
  const std::size_t max_bytes_;
  std::list<Open*> open_;
  bool is_stopping_ = false;
};

}  // namespace trainer
