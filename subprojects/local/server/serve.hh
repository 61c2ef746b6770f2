// The API server of local mode gets requests from HTTP and from this process, each with its
// admission.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kube/client/clock.hh"
#include "kube/client/http_server.hh"
#include "kube/client/task_group.hh"
#include "kube/manager/log.hh"
#include "kube/server/api.hh"
#include "kube/server/request.hh"
#include "local/server/access.hh"
#include "local/server/audit.hh"
#include "local/server/pod_tokens.hh"
#include "local/server/watches.hh"

namespace trainer {

// A request comes from one of these.
enum class Caller {
  kUser,        // over HTTP, with the token
  kController,  // the control loops
  kNode,        // the node agent
};

struct Answer {
  kube::server::Response response;
  kube::StreamBody stream;  // the body, if it is not in `response`
};

// Guarantees: a write is in the journal before it is answered. A change that cannot be stored is
// answered 500 with the reason, and so is an exception (a bug), which is logged. Concurrency: the
// thread of `io`. It outlives all transports to it.
class ApiServer {
 public:
  using Admitted = tl::expected<kube::server::PendingWrite, kube::server::Response>;
  struct Hooks {
    // Returns the write with the changes of admission, or the refusal.
    std::function<kube::Task<Admitted>(kube::server::PendingWrite write, Caller caller)> admit;
    // Calls `write` with each piece of the log, first with an empty one as soon as there is a log
    // to read. An error before that is the answer. It is empty if there is no node.
    std::function<kube::Task<kube::Result<void>>(kube::server::LogQuery query,
                                                 kube::WriteBody write)>
        read_logs;
  };

  ApiServer(kube::asio::io_context& io, kube::Clock& clock, kube::server::Api& api,
            const Access& access, const kube::Log& log, Audit* audit);
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Call this before the first request. An empty `admit` allows every write unchanged.
  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }
  // Listens on 127.0.0.1; port 0: any free one. Errors are those of kube::serve.
  kube::Result<unsigned short> listen(unsigned short port);

  kube::Task<Answer> answer(kube::server::Request request, Caller caller);

  // Stops listening, and ends streams and requests that wait.
  void stop();
  kube::Task<void> drained();

  // Logs an exception of a task (a bug).
  void report(std::string_view what);

  // Returns when the last request came over HTTP or the last stream over HTTP ended; now, while one
  // is open.
  kube::Clock::Steady quiet_since() const;
  kube::asio::io_context& io() { return io_; }
  // Returns the tasks of requests from this process, and of their streams.
  kube::TaskGroup& tasks() { return tasks_; }

 private:
  kube::Task<Answer> carry_out(kube::server::Request request, Caller caller, AuditRecord& record);
  // Answers a review or a request of a token; nullopt for any other request.
  std::optional<kube::server::Response> answer_token(const kube::server::Request& request);
  kube::Task<Answer> open_log(kube::server::LogQuery query);
  kube::Task<kube::ServerResponse> handle(kube::ServerRequest request);
  kube::Task<void> send_to_user(kube::StreamBody stream, kube::WriteBody write);
  kube::server::Response failure_of(std::string_view what);

  kube::asio::io_context& io_;
  kube::Clock& clock_;
  kube::server::Api& api_;
  const Access& access_;
  const PodTokens pod_tokens_;
  const kube::Log& log_;
  Audit* const audit_;  // nullptr: none is written
  Hooks hooks_;
  Watches watches_;
  kube::TaskGroup tasks_;
  std::unique_ptr<kube::HttpServer> http_;
  kube::Clock::Steady last_request_;
  std::size_t user_streams_ = 0;
};

}  // namespace trainer
