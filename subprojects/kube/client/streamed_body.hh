// The body of an answer is sent as it comes: a watch, or a log that is followed.
#pragma once

#include <functional>
#include <string_view>

#include "kube/client/byte_stream.hh"
#include "kube/client/http_server.hh"

namespace kube {

// Sends the pieces that `body` writes in chunks (RFC 9112, 7.1), and the end of the body if it ends
// in order. Each piece may take `limit`. If the client closes the connection, `body` is cancelled:
// it has ended before this returns. Its exceptions go to `on_error`, which may be empty. Afterwards
// only close() may be called. `stream` outlives the call.
Task<void> send_in_chunks(ByteStream& stream, StreamBody body, Milliseconds limit,
                          std::function<void(std::string_view)> on_error);

}  // namespace kube
