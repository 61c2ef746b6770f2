// The node agent reads a pod's log, and it is sent to a client.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kube/client/http_server.hh"
#include "kube/client/notifier.hh"
#include "kube/client/task_group.hh"
#include "kube/server/api.hh"

namespace trainer {

// It is only known once reading has begun whether the answer is an error. So reading is a task of
// its own, which waits while the client has not taken its last piece. Concurrency: one thread.
class LogReading {
 public:
  using Self = std::shared_ptr<LogReading>;
  using Read = std::function<kube::Task<kube::Result<void>>(kube::server::LogQuery query,
                                                            kube::WriteBody write)>;
  explicit LogReading(const kube::asio::any_io_executor& executor);

  // Waits until `read` has something to write, or has ended. Returns the body of the answer; when
  // the last copy of that is destroyed, reading ends. Errors: those of `read`, if it wrote nothing.
  static kube::Task<kube::Result<kube::StreamBody>> begin(Self self, Read read,
                                                          kube::server::LogQuery query);

 private:
  static kube::Task<void> run(Self self, Read read, kube::server::LogQuery query);
  static kube::Task<bool> write(Self self, std::string piece);
  static kube::Task<void> send(Self self, kube::WriteBody to);
  void end(kube::Result<void> outcome);

  kube::Notifier changed_;
  kube::TaskGroup tasks_;
  std::string pending_;
  bool has_begun_ = false;
  bool has_client_left_ = false;
  std::optional<kube::Result<void>> outcome_;
};

}  // namespace trainer
