// This is an HTTP server of a kind, besides the webhooks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kube/client/api_client.hh"
#include "kube/client/http_server.hh"
#include "kube/client/task.hh"
#include "kube/manager/log.hh"

namespace trainer {

// Concurrency: the serving thread.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  virtual kube::Task<kube::ServerResponse> handle(kube::ServerRequest request) = 0;
  // Writes all pending reports; called before the process ends.
  virtual kube::Task<void> flush() = 0;
};

struct ServerRegistration {
  std::string name;  // in logs and errors: "status server"
  unsigned short port = 0;
  std::size_t max_body_bytes = 0;
  std::function<std::unique_ptr<RequestHandler>(kube::asio::io_context& io, kube::ApiClient& client,
                                                const kube::Log& log)>
      make;
};

}  // namespace trainer
