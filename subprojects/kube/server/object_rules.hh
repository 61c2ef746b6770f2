// Every object of the API obeys these rules, whatever its kind: metadata, generation, subresources.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Removes the fields of metadata that the server alone sets: uid, creationTimestamp,
// deletionTimestamp, deletionGracePeriodSeconds and selfLink. It is called for a create.
void wipe_system_fields(Json& metadata);

// Prepares a create: sets the generation, and removes the status if the kind has the subresource
// `status`.
void prepare_create(const ServedKind& kind, Json& object);
// Prepares an update. `subresource` is "", "status" or "scale". Fields that a request to it may not
// change get their values of `before`; a changed spec raises metadata.generation.
void prepare_update(const ServedKind& kind, const Json& before, Json& object,
                    std::string_view subresource);

// The rules are those of k8s.io/apimachinery/pkg/api/validation/objectmeta.go. `before` is nullptr
// for a create.
FieldErrors check_metadata(const ServedKind& kind, const Json& object, const Json* before);

// Returns whether a CustomResourceDefinition defines the kind in a cluster, so that it is not built
// into Kubernetes: some rules differ.
bool is_custom(const Resource& resource);

// Removes the members that the schema does not have.
void prune(const ServedKind& kind, Json& object);

}  // namespace kube::server
