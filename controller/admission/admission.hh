// The API server's admission reviews are answered here.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/admission/admission_reader.hh"
#include "controller/admission/webhook.hh"
#include "kube/client/api_client.hh"
#include "kube/client/http_server.hh"
#include "kube/client/token_bucket.hh"
#include "kube/manager/log.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// Passes each review to the handler that a kind registered for its path.
//
// Errors: 400 for a body that is not an AdmissionReview or has more values than any object in etcd,
// 404 for an unknown path, 405 for another method than POST. A lookup that failed for another
// reason than "not found" becomes a refusal with code 500, so that the client can try again. Never
// throws on input. Refusals are logged at info, at most ten in a row and one a second, the others
// at debug. Concurrency: the io_context thread of `client`; requests may overlap.
class Admission {
 public:
  // It is called when a review begins, with the webhook's path.
  using OnBegin = std::function<void(std::string_view path)>;
  // It is called when the review ends: with the path, "allowed", "denied", "error" or, if an
  // exception has ended it, "panic", and its duration.
  using OnReview = std::function<void(std::string_view path, std::string_view outcome,
                                      std::chrono::steady_clock::duration took)>;
  Admission(std::vector<WebhookHandler> handlers, kube::ApiClient& client,
            const AdmissionState& state, const kube::Log& log, OnReview on_review = {},
            OnBegin on_begin = {});

  // Answers an HTTP request.
  kube::Task<kube::ServerResponse> handle(kube::ServerRequest request);
  // Answers one admission request of a registered path, without HTTP. An unknown path is allowed.
  kube::Task<AdmissionAnswer> review(std::string path, AdmissionRequest request);

 private:
  kube::Task<AdmissionAnswer> measured(std::string path, AdmissionRequest request);
  const WebhookHandler* find(std::string_view path) const;

  std::vector<WebhookHandler> handlers_;
  kube::ApiClient& client_;
  AdmissionReader reader_;
  const kube::Log& log_;
  OnReview on_review_;
  OnBegin on_begin_;
  kube::TokenBucket shown_refusals_;  // limits how many refusals are logged at info
};

}  // namespace trainer
