// Requests go to the API server of this process, without sockets.
#pragma once

#include <memory>

#include "kube/client/transport.hh"
#include "local/server/serve.hh"

namespace trainer {

// Does what kube::make_transport does, but requests are posted to the server's thread, and answers
// posted back to that of `io`; both may be the same thread. Answers come in the order in which the
// server has finished the requests. A request that was sent is executed even if its deadline passes
// or it is cancelled. The writer of a stream waits while a megabyte of it was not read. Lifecycle:
// `server`, with its io_context, outlives the transport and its streams.
std::unique_ptr<kube::Transport> make_local_transport(kube::asio::io_context& io, ApiServer& server,
                                                      Caller caller);

}  // namespace trainer
