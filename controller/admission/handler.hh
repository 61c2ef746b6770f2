// Answers the API server's admission reviews.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "controller/admission/pod_handler.hh"
#include "controller/admission/state.hh"
#include "controller/core/decoded_objects.hh"
#include "controller/core/log.hh"
#include "kube/client/api_client.hh"
#include "kube/client/http_server.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// Looks up what a request needs, from the published view first and live where that has no answer
// (two watches have no order: a runtime may have been applied a moment before its first job), then
// asks the pure rules of runtimes/admission.
//
// Errors: a body that is no AdmissionReview, or has more values than any object of etcd's, is
// answered 400, an unknown path 404, another method than POST 405; a lookup that failed for another
// reason than "not found" becomes a refusal with code 500, so that the client may try again. Never
// throws on input. Concurrency: the io_context thread of `client`; requests may overlap.
class AdmissionHandler {
 public:
  // Told of every answered review: the webhook's path, "allowed", "denied" or "error", and how long
  // it took.
  using OnReview = std::function<void(std::string_view path, std::string_view outcome,
                                      std::chrono::steady_clock::duration took)>;
  AdmissionHandler(kube::ApiClient& client, const AdmissionState& state, jobset::Gates gates,
                   const Log& log, OnReview on_review = {});

  kube::Task<kube::ServerResponse> handle(kube::ServerRequest request);

 private:
  struct Facts;
  using ObjectPointer = std::shared_ptr<const kube::Json>;
  kube::Task<AdmissionAnswer> answer(std::string path, AdmissionRequest request);
  kube::Task<AdmissionAnswer> answer_pod(std::string path, AdmissionRequest request);
  // `request` and `facts` live in the caller's frame, which awaits these.
  kube::Task<kube::Result<Facts>> gather(std::string path, const AdmissionRequest& request);
  kube::Task<kube::Result<void>> gather_state_of_job(const AdmissionRequest& request, Facts& facts);
  kube::Task<kube::Result<ObjectPointer>> read_runtime(std::string kind, kube::ObjectKey key);
  kube::Task<kube::Result<ObjectPointer>> read(kube::Resource resource, kube::ObjectKey key);

  kube::ApiClient& client_;
  PodHandler pods_;
  const AdmissionState& state_;
  jobset::Gates gates_;
  const Log& log_;
  OnReview on_review_;
  DecodedObjects<ObjectPointer> runtimes_;  // most jobs name one of a few
};

}  // namespace trainer
