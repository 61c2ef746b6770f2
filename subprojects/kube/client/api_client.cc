#include "kube/client/api_client.hh"

#include <algorithm>
#include <utility>

#include "kube/client/json_scan.hh"
#include "kube/client/url.hh"
#include "kube/client/yield.hh"
#include "kube/model/json_text.hh"

namespace kube {

namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kAnything = "application/json, */*";
constexpr int kPageSize = 500;
constexpr std::size_t kMaxErrorBody = 64U << 10;

HttpRequest with_body(std::string method, std::string target, std::string content_type,
                      const Json& body, bool is_idempotent) {
  HttpRequest request(std::move(method), std::move(target));
  request.content_type = std::move(content_type);
  request.body = print_json(body);
  request.is_idempotent = is_idempotent;
  return request;
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

// 100 ms, 200 ms, 400 ms, ..., each by a factor from 0.5 to 1.5, so that clients that failed
// together do not return together.
Milliseconds backoff(int attempt, Random& random) {
  const double base = 100.0 * static_cast<double>(1 << std::min(attempt, 6));
  return Milliseconds(static_cast<int>(base * (0.5 + random.fraction())));
}

// How one attempt went, in the terms of the retry rules.
struct Attempt {
  bool was_written = false;  // the server may have seen the request
  bool has_pieces = false;   // part of the answer's body is with the caller already
};

// True where the request may be sent again: nothing happened, or happening twice is the same as
// once.
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

Json delete_options(const DeleteOptions& options) {
  Json body = Json::object({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  if (!options.propagation.empty()) body.set("propagationPolicy", options.propagation);
  Json preconditions = Json::object();
  if (!options.uid.empty()) preconditions.set("uid", options.uid);
  if (!options.resource_version.empty()) {
    preconditions.set("resourceVersion", options.resource_version);
  }
  if (!preconditions.empty()) body.set("preconditions", std::move(preconditions));
  return body;
}

}  // namespace

ApiClient::ApiClient(Transport& transport, Clock& clock, Random& random, Options options)
    : transport_(transport), clock_(clock), random_(random), options_(std::move(options)) {}

ApiClient::~ApiClient() = default;

Task<Result<HttpResponse>> ApiClient::attempt(HttpRequest request, const ObjectRef& subject) {
  const std::string method = request.method;
  const auto start = clock_.steady();
  auto outcome = co_await transport_.send(std::move(request));
  if (options_.on_request) {
    RequestRecord record;
    record.method = method;
    record.resource = subject.resource;
    record.subresource = subject.subresource;
    record.status = outcome ? outcome->status : 0;
    record.duration = clock_.steady() - start;
    options_.on_request(record);
  }
  co_return std::move(outcome);
}

Task<Result<HttpResponse>> ApiClient::send(HttpRequest request, ObjectRef subject) {
  const auto deadline = clock_.steady() + options_.deadline;
  Attempt state;
  // Two pointers: more would not fit into a std::function without an allocation.
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
    auto outcome = co_await attempt(request, subject);
    if (outcome && is_success(outcome->status)) co_return std::move(*outcome);

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

Task<Result<std::string>> ApiClient::send_text(HttpRequest request, ObjectRef subject) {
  // Neither side of the exchange is one step with what the caller computes before and after it.
  if (request.body.size() >= kLargeText) co_await yield();
  auto response = co_await send(std::move(request), std::move(subject));
  if (!response) co_return tl::unexpected(response.error());
  if (response->body.size() >= kLargeText) co_await yield();
  co_return std::move(response->body);
}

Task<Result<Json>> ApiClient::send_json(HttpRequest request, ObjectRef subject) {
  const std::string what = request.method + " " + request.target;
  const auto text = co_await send_text(std::move(request), std::move(subject));
  if (!text) co_return tl::unexpected(text.error());
  auto body = parse_json(*text, kObjectLimits);
  if (!body) co_return tl::unexpected(body.error().at(what));
  if (text->size() >= kLargeText) co_await yield();
  co_return std::move(*body);
}

Task<Result<Json>> ApiClient::get(Resource resource, ObjectKey key) {
  HttpRequest request("GET", api_path(resource, key));
  co_return co_await send_json(std::move(request), ObjectRef(resource.plural, ""));
}

Task<Result<ListPage>> ApiClient::list_page(HttpRequest request, ObjectRef subject,
                                            std::function<void(std::string_view item)> on_item) {
  const std::string what = request.method + " " + request.target;
  ListSplitter splitter(std::move(on_item));
  request.on_body = [&splitter](std::string_view piece) { splitter.feed(piece); };
  const auto response = co_await send(std::move(request), std::move(subject));
  if (!response) co_return tl::unexpected(response.error());
  const auto envelope = splitter.envelope();
  if (!envelope) co_return tl::unexpected(envelope.error().at(what));
  const auto list = parse_json(*envelope);
  if (!list) co_return tl::unexpected(list.error().at(what));
  ListPage page;
  if (const Json* const metadata = list->find("metadata")) {
    page.resource_version = metadata->get_string("resourceVersion");
    page.continue_token = metadata->get_string("continue");
  }
  co_return page;
}

Task<Result<ListPage>> ApiClient::list(Resource resource, std::string ns, std::string query,
                                       std::function<void(std::string_view item)> on_item,
                                       std::size_t max_pages) {
  ObjectKey collection;
  collection.ns = std::move(ns);
  std::string target = api_path(resource, collection) + "?" + query;
  if (query.find("limit=") == std::string::npos) {
    target += (query.empty() ? "limit=" : "&limit=") + std::to_string(kPageSize);
  }
  std::string token;
  for (std::size_t pages = 1;; ++pages) {
    HttpRequest request("GET",
                        token.empty() ? target : target + "&continue=" + percent_encode(token));
    auto page = co_await list_page(std::move(request), ObjectRef(resource.plural, ""), on_item);
    if (!page || page->continue_token.empty() || pages == max_pages) co_return std::move(page);
    token = page->continue_token;
  }
}

Task<Result<std::string>> ApiClient::create(Resource resource, Json object,
                                            std::string field_manager) {
  ObjectKey collection;
  if (const Json* const metadata = object.find("metadata")) {
    collection.ns = metadata->get_string("namespace");
  }
  auto request = with_body(
      "POST", api_path(resource, collection) + "?fieldManager=" + percent_encode(field_manager),
      kJson, object, false);
  co_return co_await send_text(std::move(request), ObjectRef(resource.plural, ""));
}

Task<Result<std::string>> ApiClient::apply(Resource resource, ObjectKey key, Json object,
                                           std::string field_manager, bool force,
                                           std::string subresource) {
  auto request = with_body("PATCH",
                           api_path(resource, key, subresource) + "?fieldManager=" +
                               percent_encode(field_manager) + (force ? "&force=true" : ""),
                           "application/apply-patch+yaml", object, true);
  co_return co_await send_text(std::move(request),
                               ObjectRef(resource.plural, std::move(subresource)));
}

Task<Result<std::string>> ApiClient::merge_patch(Resource resource, ObjectKey key, Json patch,
                                                 std::string subresource) {
  auto request = with_body("PATCH", api_path(resource, key, subresource),
                           "application/merge-patch+json", patch, true);
  co_return co_await send_text(std::move(request),
                               ObjectRef(resource.plural, std::move(subresource)));
}

Task<Result<std::string>> ApiClient::json_patch(Resource resource, ObjectKey key, Json operations,
                                                std::string subresource) {
  // An operation that inserts into a list does something else the second time.
  auto request = with_body("PATCH", api_path(resource, key, subresource),
                           "application/json-patch+json", operations, false);
  co_return co_await send_text(std::move(request),
                               ObjectRef(resource.plural, std::move(subresource)));
}

Task<Result<std::string>> ApiClient::remove(Resource resource, ObjectKey key,
                                            DeleteOptions options) {
  auto request = with_body("DELETE", api_path(resource, key), kJson, delete_options(options), true);
  co_return co_await send_text(std::move(request), ObjectRef(resource.plural, ""));
}

Task<Result<Json>> ApiClient::post(std::string path, Json body) {
  auto request = with_body("POST", std::move(path), kJson, body, false);
  co_return co_await send_json(std::move(request), ObjectRef("", ""));
}

Task<Result<std::unique_ptr<HttpStream>>> ApiClient::stream(std::string path_and_query) {
  HttpRequest request("GET", path_and_query);
  request.accept = kAnything;
  request.deadline = options_.deadline;
  auto stream = co_await transport_.open(std::move(request));
  if (!stream || (*stream)->status() == 200) co_return std::move(stream);
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

}  // namespace kube
