#include "kube/client/api_client.hh"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/client/json_scan.hh"
#include "kube/client/url.hh"
#include "kube/client/yield.hh"
#include "kube/model/text.hh"

namespace kube {

namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kAnything = "application/json, */*";
constexpr int kPageSize = 500;
constexpr std::size_t kMaxErrorBody = 64U << 10;

// `query` begins with "?", or is empty.
HttpRequest request_for(std::string method, const Resource& resource, const ObjectKey& key,
                        std::string_view subresource = {}, std::string_view query = {}) {
  HttpRequest request(std::move(method), api_path(resource, key, subresource).append(query));
  request.resource = resource.plural;
  request.subresource = subresource;
  return request;
}

HttpRequest with_body(HttpRequest request, std::string content_type, const Json& body,
                      bool is_idempotent) {
  request.content_type = std::move(content_type);
  request.body = print_json(body);
  request.is_idempotent = is_idempotent;
  return request;
}

// The backoff is 100 ms, 200 ms, 400 ms, ..., each by a factor from 0.5 to 1.5, so that clients
// that failed together do not return together.
Milliseconds backoff(int attempt, Random& random) {
  const double base = 100.0 * static_cast<double>(1 << std::min(attempt, 6));
  return Milliseconds(static_cast<int>(base * (0.5 + random.fraction())));
}

struct Attempt {
  bool was_written = false;  // the server may have seen the request
  bool has_pieces = false;   // part of the answer's body is with the caller already
};

// Returns true if the request may be sent again: nothing happened, or the effect of two is the
// effect of one.
bool may_repeat(const Result<HttpResponse>& outcome, const Attempt& attempt, bool is_idempotent) {
  if (!outcome) {
    if (outcome.error().code != ErrorCode::kNetwork || attempt.has_pieces) return false;
    return is_idempotent || !attempt.was_written;
  }
  if (outcome->status == 429) return true;
  return outcome->status >= 500 && is_idempotent;
}

Result<void> not_the_leader() {
  return fail(ErrorCode::kCancelled,
              "not sent: this process has not renewed its Lease in time, and another may lead");
}

// These reasons of metav1.Status say more than the HTTP status does.
ErrorCode code_of(int status, std::string_view reason) {
  using enum ErrorCode;
  if (status == 409) return reason == "AlreadyExists" ? kAlreadyExists : kConflict;
  constexpr std::pair<int, ErrorCode> kCodes[] = {
      {401, kUnauthorized},    {403, kForbidden},   {404, kNotFound},
      {405, kUnsupported},     {406, kUnsupported}, {410, kGone},
      {413, kTooLarge},        {415, kUnsupported}, {422, kInvalid},
      {429, kTooManyRequests}, {504, kTimeout}};
  const auto* const at = std::ranges::find(kCodes, status, &std::pair<int, ErrorCode>::first);
  if (at != std::end(kCodes)) return at->second;
  return status >= 500 ? kServerError : kBadRequest;
}

// More seconds than fit into milliseconds would overflow, and no caller waits for longer.
constexpr std::chrono::seconds kLongestWait = std::chrono::hours(24);

// Reads Retry-After in whole seconds; Kubernetes does not use the form with a date.
std::optional<Milliseconds> seconds_of(std::string_view text) {
  const bool is_number =
      !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == text.npos;
  if (!is_number) return std::nullopt;
  return std::min(kLongestWait, std::chrono::seconds(std::stol(std::string(text))));
}

}  // namespace

std::string api_path(const Resource& resource, const ObjectKey& key, std::string_view subresource) {
  std::string path = resource.group.empty() ? "/api/" + percent_encode(resource.version)
                                            : "/apis/" + percent_encode(resource.group) + "/" +
                                                  percent_encode(resource.version);
  // A namespace itself is addressed by its name, like any object without namespace.
  if (resource.namespaced && !key.ns.empty()) path += "/namespaces/" + percent_encode(key.ns);
  path += "/" + percent_encode(resource.plural);
  if (!key.name.empty()) path += "/" + percent_encode(key.name);
  if (!subresource.empty()) path += "/" + percent_encode(subresource);
  return path;
}

ApiClient::ApiClient(Transport& transport, Clock& clock, Random& random, Options options)
    : transport_(transport), clock_(clock), random_(random), options_(std::move(options)) {}

Task<Result<HttpResponse>> ApiClient::attempt(HttpRequest request) {
  const std::string method = request.method;
  const std::string resource = request.resource;
  const std::string subresource = request.subresource;
  const auto start = clock_.steady();
  auto outcome = co_await transport_.send(std::move(request));
  if (options_.on_request)
    options_.on_request(
        {method, resource, subresource, outcome ? outcome->status : 0, clock_.steady() - start});
  co_return std::move(outcome);
}

Task<Result<HttpResponse>> ApiClient::send(HttpRequest request) {
  const auto deadline = clock_.steady() + options_.deadline;
  Attempt state;
  // The function holds two pointers: more would not fit into a std::function without an allocation.
  const bool is_fenced = request.method != "GET" && options_.may_write;
  request.on_write = [&state, may_write = is_fenced ? &options_.may_write : nullptr] {
    if (may_write && !(*may_write)()) return not_the_leader();
    state.was_written = true;
    return Result<void>();
  };
  if (request.on_body) {
    request.on_body = [&state, inner = std::move(request.on_body)](std::string_view piece) {
      state.has_pieces = true;
      inner(piece);
    };
  }
  for (int attempts = 0;; ++attempts) {
    state = Attempt();
    request.deadline = std::chrono::duration_cast<Milliseconds>(deadline - clock_.steady());
    auto outcome = co_await attempt(request);
    if (outcome && outcome->status / 100 == 2) {
      if (options_.on_warning && request.method != "GET")
        for (const std::string& text : outcome->warnings()) options_.on_warning(text);
      co_return std::move(*outcome);
    }

    const Error error = outcome ? error_of(*outcome) : outcome.error();
    const auto wait = error.retry_after ? *error.retry_after : backoff(attempts, random_);
    const bool is_over =
        attempts + 1 >= options_.max_attempts || clock_.steady() + wait >= deadline;
    if (is_over || !may_repeat(outcome, state, request.is_idempotent)) {
      co_return tl::unexpected(std::move(error));
    }
    co_await sleep(clock_, wait);
  }
}

Task<Result<std::string>> ApiClient::send_text(HttpRequest request) {
  // Computations before and after a large exchange are steps of their own.
  if (request.body.size() >= kLargeText) co_await yield();
  auto response = co_await send(std::move(request));
  if (!response) co_return tl::unexpected(response.error());
  if (response->body.size() >= kLargeText) co_await yield();
  co_return std::move(response->body);
}

Task<Result<Json>> ApiClient::send_json(HttpRequest request) {
  const std::string what = request.method + " " + request.target;
  const auto text = co_await send_text(std::move(request));
  if (!text) co_return tl::unexpected(text.error());
  auto body = parse_json(*text, kObjectLimits);
  if (!body) co_return tl::unexpected(body.error().at(what));
  if (text->size() >= kLargeText) co_await yield();
  co_return std::move(*body);
}

Task<Result<Json>> ApiClient::get(Resource resource, ObjectKey key) {
  return send_json(request_for("GET", resource, key));
}

Task<Result<ListPage>> ApiClient::list_page(HttpRequest request,
                                            std::function<void(std::string_view item)> on_item) {
  const std::string what = request.method + " " + request.target;
  ListSplitter splitter(std::move(on_item));
  request.on_body = [&splitter](std::string_view piece) { splitter.feed(piece); };
  const auto response = co_await send(std::move(request));
  if (!response) co_return tl::unexpected(response.error());
  const auto envelope = splitter.envelope();
  if (!envelope) co_return tl::unexpected(envelope.error().at(what));
  const auto list = parse_json(*envelope);
  if (!list) co_return tl::unexpected(list.error().at(what));
  const Json& metadata = list->get("metadata");
  ListPage page;
  page.resource_version = metadata.get_string("resourceVersion");
  page.continue_token = metadata.get_string("continue");
  co_return page;
}

Task<Result<ListPage>> ApiClient::list(Resource resource, std::string ns, std::string query,
                                       std::function<void(std::string_view item)> on_item,
                                       std::size_t max_pages) {
  ObjectKey collection;
  collection.ns = std::move(ns);
  if (query.find("limit=") == std::string::npos)
    query += (query.empty() ? "limit=" : "&limit=") + std::to_string(kPageSize);
  std::string token;
  for (std::size_t pages = 1;; ++pages) {
    const std::string next = token.empty() ? "" : "&continue=" + percent_encode(token);
    HttpRequest request = request_for("GET", resource, collection, "", "?" + query + next);
    auto page = co_await list_page(std::move(request), on_item);
    if (!page || page->continue_token.empty() || pages == max_pages) co_return std::move(page);
    token = page->continue_token;
  }
}

std::string ApiClient::write_query(std::string_view field_manager) const {
  return "?fieldManager=" + percent_encode(field_manager) +
         (options_.is_strict ? "&fieldValidation=Strict" : "");
}

Task<Result<std::string>> ApiClient::create(Resource resource, Json object,
                                            std::string field_manager) {
  ObjectKey collection;
  collection.ns = object.get("metadata").get_string("namespace");
  return send_text(
      with_body(request_for("POST", resource, collection, "", write_query(field_manager)), kJson,
                object, false));
}

Task<Result<std::string>> ApiClient::apply(Resource resource, ObjectKey key, Json object,
                                           std::string field_manager, bool force,
                                           std::string subresource) {
  const std::string query = write_query(field_manager) + (force ? "&force=true" : "");
  return send_text(with_body(request_for("PATCH", resource, key, subresource, query),
                             "application/apply-patch+yaml", object, true));
}

Task<Result<std::string>> ApiClient::merge_patch(Resource resource, ObjectKey key, Json patch,
                                                 std::string subresource) {
  return send_text(with_body(request_for("PATCH", resource, key, subresource),
                             "application/merge-patch+json", patch, true));
}

Task<Result<std::string>> ApiClient::json_patch(Resource resource, ObjectKey key, Json operations) {
  // An operation that inserts into a list has another effect the second time.
  return send_text(with_body(request_for("PATCH", resource, key), "application/json-patch+json",
                             operations, false));
}

Task<Result<std::string>> ApiClient::replace(Resource resource, ObjectKey key, Json object) {
  return send_text(with_body(request_for("PUT", resource, key), kJson, object, true));
}

Task<Result<std::string>> ApiClient::remove(Resource resource, ObjectKey key,
                                            DeleteOptions options) {
  Json body = Json::object({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  if (!options.propagation.empty()) body.set("propagationPolicy", options.propagation);
  if (!options.uid.empty()) body["preconditions"].set("uid", options.uid);
  if (options.grace_seconds) body.set("gracePeriodSeconds", *options.grace_seconds);
  return send_text(with_body(request_for("DELETE", resource, key), kJson, body, true));
}

Task<Result<Json>> ApiClient::post(std::string path, Json body) {
  return send_json(with_body(HttpRequest("POST", std::move(path)), kJson, body, true));
}

Task<Result<std::unique_ptr<HttpStream>>> ApiClient::stream(std::string path_and_query,
                                                            std::optional<Milliseconds> deadline) {
  HttpRequest request("GET", path_and_query);
  request.accept = kAnything;
  request.deadline = deadline.value_or(options_.deadline);
  co_return co_await open(std::move(request), 200);
}

// The other protocol may have an effect, so the request is not sent twice, and only by the leader.
Task<Result<std::unique_ptr<HttpStream>>> ApiClient::upgrade(std::string path_and_query,
                                                             std::string headers) {
  HttpRequest request("GET", std::move(path_and_query));
  request.accept = kAnything;
  request.more_headers = std::move(headers);
  request.is_idempotent = false;
  request.deadline = options_.deadline;
  if (options_.may_write)
    request.on_write = [this] { return options_.may_write() ? Result<void>() : not_the_leader(); };
  co_return co_await open(std::move(request), 101);
}

Task<Result<std::unique_ptr<HttpStream>>> ApiClient::open(HttpRequest request, int wanted_status) {
  auto stream = co_await transport_.open(std::move(request));
  if (!stream || (*stream)->status() == wanted_status) co_return std::move(stream);
  HttpResponse refusal;
  refusal.status = (*stream)->status();
  refusal.add_header("retry-after", (*stream)->header("retry-after"));
  while (refusal.body.size() < kMaxErrorBody) {
    const auto piece = co_await (*stream)->read_some(options_.deadline);
    if (!piece || piece->empty()) break;
    refusal.body += *piece;
  }
  co_return tl::unexpected(error_of(refusal));
}

Error error_of(const HttpResponse& response) {
  constexpr std::size_t kExcerpt = 300;
  constexpr std::size_t kMaxMessage = 4096;  // it quotes values of the object, in their full length
  const auto body = parse_json(response.body);
  const bool is_status = body && body->get_string("kind") == "Status";
  Error error;
  error.status = response.status;
  error.code =
      code_of(response.status, is_status ? body->get_string("reason") : std::string_view());
  error.retry_after = seconds_of(response.header("retry-after"));
  if (is_status) {
    error.message = head_of(body->get_string("message"), kMaxMessage);
    if (const Json* const after = body->find_path({"details", "retryAfterSeconds"});
        !error.retry_after && after != nullptr && after->is_int() && after->as_int() > 0) {
      error.retry_after =
          std::chrono::seconds(std::min<std::int64_t>(after->as_int(), kLongestWait.count()));
    }
  }
  if (error.message.empty()) {
    error.message = "the server answered " + std::to_string(response.status);
    if (!is_status && !response.body.empty())
      error.message += ": " + response.body.substr(0, kExcerpt);
  }
  return error;
}

}  // namespace kube
