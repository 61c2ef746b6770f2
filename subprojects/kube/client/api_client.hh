// Requests to the Kubernetes API are verbs on resources, with retries and typed errors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kube/client/clock.hh"
#include "kube/client/task.hh"
#include "kube/client/transport.hh"
#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"

namespace kube {

// Pure. Returns the path of a collection or object, escaped:
// "/apis/batch/v1/namespaces/x/jobs/y/status".
std::string api_path(const Resource& resource, const ObjectKey& key,
                     std::string_view subresource = {});

struct DeleteOptions {
  // This is "Foreground", "Background", "Orphan" or empty for the server's default.
  std::string propagation;
  std::string uid;  // precondition
  // nullopt uses the object's own, such as a pod's terminationGracePeriodSeconds.
  std::optional<std::int64_t> grace_seconds;
};

struct ListPage {
  std::string resource_version;
  std::string continue_token;  // empty on the last page
};

// There is one record for each attempt of a request that has ended, for metrics and for tests that
// count them.
struct RequestRecord {
  std::string_view method;
  std::string_view resource;  // plural, or "" for a raw path
  std::string_view subresource;
  int status = 0;  // 0: no answer
  std::chrono::steady_clock::duration duration{};
};

// Guarantees: a create is never sent twice unless the server said that it did nothing (429, or a
// refused connection); 429 obeys Retry-After; 5xx and resets before the first byte of idempotent
// requests are retried with jittered backoff within the deadline. Concurrency: the io_context
// thread of its transport. Errors carry the server's `Status.message` and reason.
class ApiClient {
 public:
  struct Options {
    Milliseconds deadline{30'000};
    int max_attempts = 4;
    std::function<void(const RequestRecord&)> on_request;  // may be empty; called on the io thread
    // It is called before the first byte of anything except a GET is sent, at each try. If it
    // returns false, nothing is sent, and the request fails with kCancelled. May be empty.
    std::function<bool()> may_write;
    // Unknown and duplicate fields of objects that are created or applied are then refused, like in
    // `kubectl apply`. Otherwise the server drops them.
    bool is_strict = false;
    // It gets each warning of an answer to a write, such as those of admission; may be empty.
    std::function<void(std::string_view text)> on_warning;
    Options() {}
  };
  ApiClient(Transport& transport, Clock& clock, Random& random, Options options = Options());

  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  Task<Result<Json>> get(Resource resource, ObjectKey key);
  // Reads a collection page by page; `on_item` gets every item as its bytes (one JSON object each,
  // without `kind` if the server omits it). `query` is appended: "labelSelector=a%3Db". kGone says
  // that the continue token expired: start again. An item above 16 MB is cut, so that its decoding
  // fails. After any error the items seen so far are no whole state of the collection. If more than
  // `max_pages` are needed, the result has the next one's token.
  Task<Result<ListPage>> list(Resource resource, std::string ns, std::string query,
                              std::function<void(std::string_view item)> on_item,
                              std::size_t max_pages = SIZE_MAX);
  // A write returns the text of the answer, the object in its new state: most callers only need
  // that the write is done. (A remove may answer a Status instead.)
  Task<Result<std::string>> create(Resource resource, Json object,
                                   std::string field_manager = "trainer");
  Task<Result<std::string>> apply(Resource resource, ObjectKey key, Json object,
                                  std::string field_manager, bool force,
                                  std::string subresource = {});
  Task<Result<std::string>> merge_patch(Resource resource, ObjectKey key, Json patch,
                                        std::string subresource = {});
  Task<Result<std::string>> json_patch(Resource resource, ObjectKey key, Json operations);
  // This is a PUT, conditional on the object's resourceVersion, if it has one.
  Task<Result<std::string>> replace(Resource resource, ObjectKey key, Json object);
  Task<Result<std::string>> remove(Resource resource, ObjectKey key, DeleteOptions options);
  // This is a POST to a review API (TokenReview, SubjectAccessReview), or a dry run: it stores
  // nothing, so it may be sent again. The answer is returned.
  Task<Result<Json>> post(std::string path, Json body);
  // Opens a stream on its own connection: a watch, or a followed log. `deadline` is that of the
  // answer's head; by default the client's.
  Task<Result<std::unique_ptr<HttpStream>>> stream(
      std::string path_and_query, std::optional<Milliseconds> deadline = std::nullopt);
  // Opens a connection for another protocol, with the lines of the header that ask for it, by a GET
  // that is sent once. The status of the stream is 101.
  Task<Result<std::unique_ptr<HttpStream>>> upgrade(std::string path_and_query,
                                                    std::string headers);

  Clock& clock() { return clock_; }
  Random& random() { return random_; }

 private:
  std::string write_query(std::string_view field_manager) const;
  Task<Result<HttpResponse>> send(HttpRequest request);
  Task<Result<std::string>> send_text(HttpRequest request);
  Task<Result<Json>> send_json(HttpRequest request);
  Task<Result<HttpResponse>> attempt(HttpRequest request);
  Task<Result<std::unique_ptr<HttpStream>>> open(HttpRequest request, int wanted_status);
  Task<Result<ListPage>> list_page(HttpRequest request,
                                   std::function<void(std::string_view item)> on_item);
  Transport& transport_;
  Clock& clock_;
  Random& random_;
  Options options_;
};

// Returns the error that a `Status` answer means.
Error error_of(const HttpResponse& response);

}  // namespace kube
