// Where a server is reached.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "kube/client/task.hh"

namespace kube {

// Opens, binds and starts the acceptor. `host` and `port` as in ServerOptions (http_server.hh);
// blocks while a host name is looked up. Errors: kNetwork when the address cannot be found or
// bound.
Result<void> listen(asio::ip::tcp::acceptor& acceptor, const std::string& host,
                    unsigned short port);

}  // namespace kube
