#include "local/server/serve.hh"

#include <boost/system/system_error.hpp>
#include <exception>
#include <utility>
#include <variant>

#include "kube/model/json_text.hh"
#include "local/server/journal.hh"
#include "local/server/log_reading.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;
using kube::server::Request;
using kube::server::Response;

namespace {

constexpr const char* kTokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr const char* kController =
    "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager";

// A client that reads a log may pause this long: a pager, or a command that Ctrl-Z has stopped.
constexpr kube::Milliseconds kLongestPause{24LL * 3'600'000};
// Streams are not closed to make room for others, and each log that is followed is one: several
// commands follow 200 nodes each.
constexpr std::size_t kMaxConnections = 5'000;

const char* user_of(Caller caller) {
  return caller == Caller::kUser         ? kLocalUser
         : caller == Caller::kController ? kController
                                         : "system:node:local";
}

// The text is a quoted string by RFC 9111 (5.5 of RFC 7234).
std::string warning_header(std::string_view text) {
  std::string quoted = "299 - \"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c == '\r' || c == '\n' ? ' ' : c);
  }
  return quoted + "\"";
}

// Returns whether it is a probe: kube-apiserver answers these to all clients.
bool is_open_to_all(std::string_view path) {
  return path == "/healthz" || path == "/readyz" || path == "/livez";
}

kube::ServerResponse http_response(Answer answer) {
  kube::ServerResponse made;
  made.status = answer.response.status;
  made.content_type = std::move(answer.response.content_type);
  made.body = std::move(answer.response.body);
  for (const std::string& text : answer.response.warnings)
    made.headers.emplace_back("Warning", warning_header(text));
  made.stream = std::move(answer.stream);
  return made;
}

// Returns the name of the object that a create sends.
std::string name_in(std::string_view body) {
  const auto object = kube::parse_json(body, kube::kObjectLimits);
  return object ? kube::ObjectMeta::of(*object).name : std::string();
}

Response log_failure(const kube::Error& error) {
  if (error.code == kube::ErrorCode::kNotFound)
    return kube::server::failure(404, "NotFound", error.message);
  if (error.code == kube::ErrorCode::kInternal)
    return kube::server::failure(500, "InternalError", error.message);
  return kube::server::failure(400, "BadRequest", error.message);
}

Answer answer_of(Response response) {
  Answer answer;
  answer.response = std::move(response);
  return answer;
}

}  // namespace

ApiServer::ApiServer(kube::asio::io_context& io, kube::Clock& clock, kube::server::Api& api,
                     const Access& access, const kube::Log& log, Audit* audit)
    : io_(io),
      clock_(clock),
      api_(api),
      access_(access),
      pod_tokens_(access.token, api.store()),
      log_(log),
      audit_(audit),
      watches_(io.get_executor(), clock, api.store()),
      tasks_(io.get_executor(), [this](std::string_view, std::string_view what) { report(what); }),
      last_request_(clock.steady()) {}

Result<unsigned short> ApiServer::listen(unsigned short port) {
  kube::ServerOptions options;
  options.address = "127.0.0.1";
  options.port = port;
  options.is_tls = true;
  options.certificate_pem = access_.certificates.certificate;
  options.private_key_pem = access_.certificates.key;
  options.stream_deadline = kLongestPause;
  options.max_connections = kMaxConnections;
  options.is_known = [this](const kube::Secret<std::string>& authorization) {
    return access_.is_granted(authorization.reveal());
  };
  options.on_error = [this](std::string_view what) { report(what); };
  auto http = kube::serve(io_, std::move(options), [this](kube::ServerRequest request) {
    return handle(std::move(request));
  });
  if (!http) return tl::unexpected(http.error());
  http_ = std::move(*http);
  return http_->port();
}

void ApiServer::report(std::string_view what) {
  log_.error("request", {{"why", std::string(what)}});
}

Response ApiServer::failure_of(std::string_view what) {
  report(what);
  return kube::server::failure(500, "InternalError", "internal error: " + std::string(what));
}

Task<Answer> ApiServer::answer(Request request, Caller caller) {
  AuditRecord record;
  if (audit_ != nullptr) {
    record.method = request.method;
    record.target = request.target;
    record.user = user_of(caller);
    record.user_agent = request.user_agent;
    record.received = clock_.now();
    if (request.method == "POST") record.name = name_in(request.body);
  }
  Answer answer;
  try {
    answer = co_await carry_out(std::move(request), caller, record);
  } catch (const StorageError& error) {
    log_.warn("storage", {{"why", error.what()}});
    answer.response = kube::server::failure(500, "InternalError", error.what());
  } catch (const boost::system::system_error& error) {
    if (error.code() == kube::asio::error::operation_aborted) throw;
    answer.response = failure_of(error.what());
  } catch (const std::exception& error) {
    answer.response = failure_of(error.what());
  }
  if (audit_ != nullptr) {
    record.status = answer.response.status;
    record.answered = clock_.now();
    audit_->write(record);
  }
  co_return answer;
}

Task<Answer> ApiServer::carry_out(Request request, Caller caller, AuditRecord& record) {
  if (auto answered = answer_token(request)) co_return answer_of(std::move(*answered));
  auto outcome = api_.begin(std::move(request));
  while (auto* const write = std::get_if<kube::server::PendingWrite>(&outcome)) {
    if (!write->key.name.empty()) record.name = write->key.name;
    if (hooks_.admit) {
      Admitted admitted = co_await hooks_.admit(std::move(*write), caller);
      if (!admitted) co_return answer_of(std::move(admitted.error()));
      *write = std::move(*admitted);
    }
    outcome = api_.finish(std::move(*write));
  }
  if (auto* const query = std::get_if<kube::server::LogQuery>(&outcome))
    co_return co_await open_log(std::move(*query));
  if (auto* const response = std::get_if<Response>(&outcome))
    co_return answer_of(std::move(*response));
  // There is no await since begin(), so the watch misses nothing.
  auto& watch = std::get<kube::server::Watch>(outcome);
  Answer answer;
  answer.response.content_type = watch.content_type;
  answer.stream = watches_.open(std::move(watch));
  co_return answer;
}

std::optional<Response> ApiServer::answer_token(const Request& request) {
  if (request.method != "POST") return std::nullopt;
  const bool is_review = request.target.starts_with(kTokenReviews);
  const auto account = is_review ? std::nullopt : PodTokens::account_of(request.target);
  if (!is_review && !account) return std::nullopt;
  const auto body = kube::parse_json(request.body, kube::kObjectLimits);
  if (!body) {
    const std::string kind = is_review ? "TokenReview: " : "TokenRequest: ";
    return kube::server::failure(400, "BadRequest", kind + body.error().message);
  }
  if (account) return pod_tokens_.issue(*account, *body, clock_.now());
  auto status = pod_tokens_.review(body->get("spec"), clock_.now());
  if (!status) return access_.review(*body);
  Json answer = *body;
  answer.set("status", std::move(*status));
  return kube::server::json_response(201, answer);
}

Task<Answer> ApiServer::open_log(kube::server::LogQuery query) {
  if (!hooks_.read_logs) {
    co_return answer_of(kube::server::failure(
        400, "BadRequest", "there are no logs: this daemon runs without a node (--no-node)"));
  }
  const auto reading = std::make_shared<LogReading>(io_.get_executor());
  auto begun = co_await reading->begin(reading, hooks_.read_logs, std::move(query));
  if (!begun) {
    co_return answer_of(log_failure(begun.error()));
  }
  Answer answer;
  answer.response.content_type = "text/plain";
  answer.stream = std::move(*begun);
  co_return answer;
}

Task<kube::ServerResponse> ApiServer::handle(kube::ServerRequest request) {
  last_request_ = clock_.steady();
  if (!is_open_to_all(request.path) && !access_.is_granted(request.authorization.reveal())) {
    co_return http_response(answer_of(kube::server::failure(401, "Unauthorized", "Unauthorized")));
  }
  Request asked;
  asked.method = std::move(request.method);
  asked.target = std::move(request.path);
  if (!request.query.empty()) asked.target += "?" + request.query;
  asked.content_type = std::move(request.content_type);
  asked.accept = std::move(request.accept);
  asked.user_agent = std::move(request.user_agent);
  asked.body = std::move(request.body);
  Answer answered = co_await answer(std::move(asked), Caller::kUser);
  if (answered.stream) {
    answered.stream = [this, stream = std::move(answered.stream)](kube::WriteBody write) {
      return send_to_user(stream, std::move(write));
    };
  }
  co_return http_response(std::move(answered));
}

Task<void> ApiServer::send_to_user(kube::StreamBody stream, kube::WriteBody write) {
  struct Counted {
    ApiServer& server;
    explicit Counted(ApiServer& counting) : server(counting) { ++server.user_streams_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() {
      --server.user_streams_;
      server.last_request_ = server.clock_.steady();
    }
  };
  const Counted counted(*this);
  co_await stream(std::move(write));
}

kube::Clock::Steady ApiServer::quiet_since() const {
  return user_streams_ > 0 ? clock_.steady() : last_request_;
}

void ApiServer::stop() {
  watches_.stop();
  if (http_) http_->stop();
  tasks_.cancel();
}

Task<void> ApiServer::drained() {
  if (http_) co_await http_->drained();
  co_await tasks_.join();
}

}  // namespace trainer
