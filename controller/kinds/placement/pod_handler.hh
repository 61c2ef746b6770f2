// Reviews of pods under exclusive placement: what the rules look up is read live.
#pragma once

#include "kube/client/api_client.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// Costs no request but for followers under exclusive placement: their leader is listed by its
// labels, and its node read by name. Both are asked of the API server and not of a store, because
// a leader has often been bound a moment before its followers are made, and every replica answers.
//
// Errors: those of the API server, with what was asked; that something does not exist is for the
// rules to judge. Concurrency: the io_context thread of `client`.
class PodHandler {
 public:
  explicit PodHandler(kube::ApiClient& client) : client_(client) {}

  kube::Task<kube::Result<AdmissionAnswer>> mutate(AdmissionRequest request);
  kube::Task<kube::Result<AdmissionAnswer>> validate(AdmissionRequest request);

 private:
  class Facts;
  using Rules = AdmissionAnswer (*)(const AdmissionRequest&, const jobset::PlacementLookups&);
  kube::Task<kube::Result<AdmissionAnswer>> evaluate(Rules rules, AdmissionRequest request);
  // `facts` lives in the caller's frame, which awaits these.
  kube::Task<kube::Result<void>> learn_leaders(const AdmissionRequest& request, Facts& facts);
  kube::Task<kube::Result<void>> learn_node(Facts& facts);

  kube::ApiClient& client_;
};

}  // namespace trainer
