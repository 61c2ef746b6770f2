// Webhook handlers read these objects.
#pragma once

#include <memory>

#include "controller/admission/admission_view.hh"
#include "kube/client/api_client.hh"
#include "kube/manager/decoded_objects.hh"

namespace trainer {

// Reads the cached objects first, and the API server if they lack one: two watches have no common
// order, so a runtime that was applied just before its first job may not be cached yet.
// Concurrency: the io_context thread of `client`.
class AdmissionReader {
 public:
  using Object = std::shared_ptr<const kube::Json>;

  AdmissionReader(kube::ApiClient& client, const AdmissionState& state)
      : client_(client),
        state_(state),
        decoded_([](Object object) { return object; }, kObjectsKept) {}

  // Reads from the API server; nullptr if there is no such object. Errors: the API server's, with
  // the name.
  kube::Task<kube::Result<Object>> read(kube::Resource resource, kube::ObjectKey key);
  // Returns the cached object, else the result of read().
  kube::Task<kube::Result<Object>> read_cached(kube::Resource resource, kube::ObjectKey key);
  kube::ApiClient& client() { return client_; }

 private:
  static constexpr std::size_t kObjectsKept = 16;  // most jobs name one of a few runtimes

  kube::ApiClient& client_;
  const AdmissionState& state_;
  kube::DecodedObjects<Object> decoded_;
};

}  // namespace trainer
