// This API server holds the fixed objects, and stores no write: the controller's requests are
// counted.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kube/client/transport.hh"

namespace trainer::instructions {

// Concurrency: the thread of its io_context.
class Server final : public kube::Transport {
 public:
  explicit Server(kube::asio::io_context& io);

  kube::Task<kube::Result<kube::HttpResponse>> send(kube::HttpRequest request) override;
  kube::Task<kube::Result<std::unique_ptr<kube::HttpStream>>> open(
      kube::HttpRequest request) override;

  // Sends a line to the watch of a collection. Exits where there is no such watch.
  void push(std::string_view plural, std::string_view line);
  int requests() const { return requests_; }
  const std::string& last_request() const { return last_request_; }

 private:
  class Stream;
  kube::asio::io_context& io_;
  std::map<std::string, std::string, std::less<>> lists_;    // by path
  std::map<std::string, std::string, std::less<>> objects_;  // by path
  std::map<std::string, Stream*, std::less<>> streams_;      // by plural
  int requests_ = 0;
  std::string last_request_;
};

}  // namespace trainer::instructions
