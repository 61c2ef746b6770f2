// Requests to the API server of this process, without sockets.
#pragma once

#include <memory>

#include "controller/local/serve.hh"
#include "kube/client/transport.hh"

namespace trainer {

// As kube::make_transport, but requests are posted to the server's thread, and answers posted back
// to that of `io`; both may be the same. They arrive, and are answered, in the order in which the
// server is done with them. A request whose deadline is over, or that was cancelled, is carried out
// all the same. A stream holds a megabyte that was not read yet; then its writer waits.
// Lifecycle: `server`, with its io_context, outlives the transport and what it has opened.
std::unique_ptr<kube::Transport> make_local_transport(kube::asio::io_context& io, ApiServer& server,
                                                      Caller caller);

}  // namespace trainer
