// One container's log, line by line.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/cli/log_lines.hh"
#include "controller/cli/log_pod.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Concurrency: one task at a time. Reads ahead by one piece of the body only.
class LogStream {
 public:
  // Errors: the API server's, kNotFound for a pod that is gone, kBadRequest for a container that
  // has not started.
  static kube::Task<kube::Result<LogStream>> open(kube::ApiClient& client, std::string path);

  // The next line; nullopt at the end of the log. Errors: the stream broke; the lines so far are
  // whole.
  kube::Task<kube::Result<std::optional<LogLine>>> next();

 private:
  explicit LogStream(std::unique_ptr<kube::HttpStream> stream) : stream_(std::move(stream)) {}

  std::unique_ptr<kube::HttpStream> stream_;
  LineSplitter splitter_;
  bool is_over_ = false;
};

}  // namespace trainer
