// All writes have these steps in common before they wait for admission.
#pragma once

#include <optional>

#include "kube/server/api.hh"
#include "kube/server/target.hh"

namespace kube::server {

PendingWrite pending(const Target& target, Object before, Json object, Request request);
// Makes the pending write of everything except server-side apply. The object also gets its
// defaults, and the field manager of the request owns the fields that it has changed.
PendingWrite pending_update(const Target& target, Object before, Json object, Request request,
                            Time now);

// Returns whether the target is the object itself, or a subresource that the kind has.
bool is_writable(const Target& target);
bool is_scale_of(const Target& target);

// Applies the rule of the admission plugin NamespaceLifecycle: nothing is created in a namespace
// that does not exist or is being deleted. This holds only if the kind Namespace is served.
std::optional<Response> check_namespace(const ServedKinds& kinds, const ObjectStore& store,
                                        const ServedKind& kind, const ObjectKey& key);

// Checks that the resourceVersion that a client has sent, if it has, is the stored one.
std::optional<Response> check_version(const Target& target, const Json& before, const Json& object);

// Returns `before` with the replicas of a Scale. A Response is the refusal.
tl::expected<Json, Response> scaled(const ServedKind& kind, const Json& before, const Json& scale);

}  // namespace kube::server
