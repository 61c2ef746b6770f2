// This is one container's log, line by line.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/cli/log_lines.hh"
#include "controller/cli/log_pod.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Concurrency: one task at a time. It reads ahead by one piece of the body only.
class LogStream {
 public:
  // Errors: the API server's, kNotFound for a pod that is gone, kBadRequest for a container that
  // has not started, kTimeout if no answer comes within `deadline`.
  static kube::Task<kube::Result<LogStream>> open(
      kube::ApiClient& client, std::string path,
      std::optional<kube::Milliseconds> deadline = std::nullopt);

  // A training job may print nothing for hours; TCP keep-alive detects a dead connection.
  static constexpr kube::Milliseconds kIdle{24LL * 3'600'000};

  // Returns the next line; nullopt at the end of the log. Errors: the stream broke, or nothing came
  // for `idle`; the lines so far are whole.
  kube::Task<kube::Result<std::optional<LogLine>>> next(kube::Milliseconds idle = kIdle);

 private:
  explicit LogStream(std::unique_ptr<kube::HttpStream> stream) : stream_(std::move(stream)) {}

  std::unique_ptr<kube::HttpStream> stream_;
  LineSplitter splitter_;
  bool is_over_ = false;
};

}  // namespace trainer
