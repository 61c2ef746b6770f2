// The objects of an installation are written here: `trainer crds --apply`, `trainer runtimes
// --apply`.
#pragma once

#include "kube/client/api_client.hh"

namespace trainer {

// An installation writes as this field manager.
inline constexpr const char* kInstaller = "trainer-install";

// Does a server-side apply, which also takes fields of other managers. Returns the object in its
// new state. Waits for at most a minute if the API server does not answer, or does not serve the
// kind yet. Errors name the object. Concurrency: the io_context thread of the client.
kube::Task<kube::Result<kube::Json>> apply_object(kube::ApiClient& client, kube::Resource resource,
                                                  kube::Json object);

// Does the same for a CustomResourceDefinition, until its kind is served.
kube::Task<kube::Result<void>> apply_crd(kube::ApiClient& client, kube::Json crd);

}  // namespace trainer
