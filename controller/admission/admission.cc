#include "controller/admission/admission.hh"

#include <algorithm>
#include <utility>

#include "kube/model/json_text.hh"
#include "runtimes/views/text.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::Task;

namespace {

// This limits the texts of refusals in the log, since a client without access could fill it with
// them.
constexpr std::size_t kMaxLoggedText = 1'024;
constexpr std::chrono::seconds kLogInterval(1);
constexpr int kLogBurst = 10;

// No rule reads managedFields, and they are a large part of most objects.
kube::JsonFilter read_of_reviews() {
  using enum kube::JsonFilter::Members;
  const std::vector<kube::JsonFilter> metadata{
      {"metadata", kExclude, {{"managedFields", kExclude, {}}}}};
  return {
      "",
      kExclude,
      {{"request", kExclude, {{"object", kExclude, metadata}, {"oldObject", kExclude, metadata}}}}};
}

AdmissionAnswer failed_lookup(const kube::Error& error) {
  return {.is_allowed = false,
          .code = 500,
          .reason = "InternalError",
          .message = error.message + ": the request could not be reviewed, try again"};
}

}  // namespace

Admission::Admission(std::vector<WebhookHandler> handlers, kube::ApiClient& client,
                     const AdmissionState& state, const kube::Log& log, OnReview on_review,
                     OnBegin on_begin)
    : handlers_(std::move(handlers)),
      client_(client),
      reader_(client, state),
      log_(log),
      on_review_(std::move(on_review)),
      on_begin_(std::move(on_begin)),
      shown_refusals_(kLogInterval, kLogBurst) {}

const WebhookHandler* Admission::find(std::string_view path) const {
  const auto at = std::find_if(handlers_.begin(), handlers_.end(),
                               [path](const WebhookHandler& each) { return each.path == path; });
  return at == handlers_.end() ? nullptr : &*at;
}

Task<kube::ServerResponse> Admission::handle(kube::ServerRequest request) {
  if (!find(request.path))
    co_return kube::ServerResponse::text(404, "there is no webhook of this path");
  if (request.method != "POST")
    co_return kube::ServerResponse::text(405, "an AdmissionReview is sent with POST");
  static const kube::JsonFilter kRead = read_of_reviews();
  // Any client that reaches the port can send a review: without limits, its 7 MB could become 300
  // MB. A review holds an object twice, and even such a pair has fewer values.
  auto document = kube::parse_json(request.body, kube::kObjectLimits, kRead);
  if (!document)
    co_return kube::ServerResponse::text(400, "not a JSON document: " + document.error().message);
  auto read = read_admission_review(*document);
  if (!read)
    co_return kube::ServerResponse::text(
        400, "not an AdmissionReview of admission.k8s.io/v1 with a request");

  // The answer needs only the uid. The rest is freed before the handler waits for its lookups.
  request.body = std::string();
  const std::string uid(document->find("request")->get_string("uid"));
  *document = Json::object({{"request", Json::object({{"uid", uid}})}});

  const ObjectKey key{read->ns, read->name};
  const std::string kind = read->kind;
  const AdmissionAnswer evaluated = co_await measured(request.path, std::move(*read));
  if (!evaluated.is_allowed) {
    const bool is_shown = shown_refusals_.try_take(client_.clock().steady());
    const auto write = is_shown ? &kube::Log::info : &kube::Log::debug;
    (log_.*write)("admission refused", {{"kind", keep_head(kind, kMaxLoggedText)},
                                        {"object", keep_head(key.to_string(), kMaxLoggedText)},
                                        {"why", keep_head(evaluated.message, kMaxLoggedText)}});
  }
  kube::ServerResponse response;
  response.body = kube::print_json(admission_review_response(*document, evaluated));
  co_return response;
}

Task<AdmissionAnswer> Admission::measured(std::string path, AdmissionRequest request) {
  const auto begin = client_.clock().steady();
  const auto end = [&](std::string_view outcome) {
    if (on_review_) on_review_(path, outcome, client_.clock().steady() - begin);
  };
  if (on_begin_) on_begin_(path);
  try {
    AdmissionAnswer answer = co_await review(path, std::move(request));
    end(answer.is_allowed ? "allowed" : answer.code >= 500 ? "error" : "denied");
    co_return answer;
  } catch (...) {
    end("panic");
    throw;
  }
}

Task<AdmissionAnswer> Admission::review(std::string path, AdmissionRequest request) {
  const WebhookHandler* const handler = find(path);
  if (!handler || (handler->is_active && !handler->is_active())) co_return AdmissionAnswer();
  auto answer = co_await handler->handle(std::move(request), reader_);
  co_return answer ? std::move(*answer) : failed_lookup(answer.error());
}

}  // namespace trainer
