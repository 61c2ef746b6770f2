// Writes the objects of an installation: `trainer crds --apply`, `trainer runtimes --apply`.
#pragma once

#include "kube/client/api_client.hh"

namespace trainer {

// The field manager of what an installation writes.
inline constexpr const char* kInstaller = "trainer-install";

// Server-side apply, which takes over fields of other managers. Returns the object as it is now.
// Waits for at most a minute if the API server does not answer, or does not serve the kind yet.
// Errors name the object. Concurrency: the io_context thread of the client.
kube::Task<kube::Result<kube::Json>> apply_object(kube::ApiClient& client, kube::Resource resource,
                                                  kube::Json object);

// The same for a CustomResourceDefinition, until its kind is served.
kube::Task<kube::Result<void>> apply_crd(kube::ApiClient& client, kube::Json crd);

}  // namespace trainer
