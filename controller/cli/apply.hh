// Writes the objects of an installation: `trainer crds --apply`, `trainer runtimes --apply`.
#pragma once

#include "kube/client/api_client.hh"

namespace trainer {

// The field manager of what an installation writes.
inline constexpr const char* kInstaller = "trainer-install";

// Server-side apply, also of fields of other managers. Answers the object as it is now. Waits, for
// a minute at most, for an API server that does not answer and for a kind that it does not serve
// yet. Errors name the object. Concurrency: the io_context thread of the client.
kube::Task<kube::Result<kube::Json>> apply_object(kube::ApiClient& client, kube::Resource resource,
                                                  kube::Json object);

// The same for a CustomResourceDefinition, until its kind is served.
kube::Task<kube::Result<void>> apply_crd(kube::ApiClient& client, kube::Json crd);

}  // namespace trainer
