// Pods under exclusive placement are reviewed here. The lookups of the rules are read from the API
// server.
#pragma once

#include "kube/client/api_client.hh"
#include "runtimes/admission/admission.hh"

namespace trainer {

// Sends requests only for followers under exclusive placement: their leader is listed by its
// labels, and its node is read by name. Both come from the API server and not from a cache, because
// a leader has often been bound just before its followers are created.
//
// Errors are those of the API server, with what was read. It is no error if an object does not
// exist: the rules decide about that. Concurrency: the io_context thread of `client`.
class PodHandler {
 public:
  explicit PodHandler(kube::ApiClient& client) : client_(client) {}

  kube::Task<kube::Result<AdmissionAnswer>> mutate(AdmissionRequest request);
  kube::Task<kube::Result<AdmissionAnswer>> validate(AdmissionRequest request);

 private:
  class Facts;
  using Rules = AdmissionAnswer (*)(const AdmissionRequest&, const jobset::PlacementLookups&);
  kube::Task<kube::Result<AdmissionAnswer>> evaluate(Rules rules, AdmissionRequest request);
  // `facts` lives in the frame of the caller, which awaits these functions.
  kube::Task<kube::Result<void>> list_leaders(const AdmissionRequest& request, Facts& facts);
  kube::Task<kube::Result<void>> read_node(Facts& facts);

  kube::ApiClient& client_;
};

}  // namespace trainer
