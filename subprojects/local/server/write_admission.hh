// Rules of a program apply to writes to local mode's API, without HTTP.
#pragma once

#include <functional>
#include <memory>

#include "kube/client/api_client.hh"
#include "kube/server/api.hh"
#include "local/server/serve.hh"

namespace trainer {

// Concurrency: the server's thread. It outlives its tasks.
class WriteAdmission {
 public:
  virtual ~WriteAdmission() = default;

  // Returns the write with the changes of the rules, or the refusal. Warnings are added to the
  // write.
  virtual kube::Task<ApiServer::Admitted> admit(kube::server::PendingWrite write,
                                                Caller caller) = 0;
};

// `client` is for the same API, on the same thread. Both outlive what is made.
using MakeAdmission =
    std::function<std::unique_ptr<WriteAdmission>(kube::server::Api& api, kube::ApiClient& client)>;

}  // namespace trainer
