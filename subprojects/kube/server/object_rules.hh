// What every object of the API obeys, whatever its kind: metadata, generation, subresources.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Removes the fields of metadata that the server alone sets: uid, creationTimestamp,
// deletionTimestamp, deletionGracePeriodSeconds and selfLink. For a create.
void wipe_system_fields(Json& metadata);

// For a create: sets the generation, and removes the status where the kind has the subresource
// `status`.
void prepare_create(const ServedKind& kind, Json& object);
// For an update. `subresource`: "", "status" or "scale". What a request to it may not change gets
// its value of `before`; a changed spec raises metadata.generation.
void prepare_update(const ServedKind& kind, const Json& before, Json& object,
                    std::string_view subresource);

// k8s.io/apimachinery/pkg/api/validation/objectmeta.go. `before` is nullptr for a create.
FieldErrors check_metadata(const ServedKind& kind, const Json& object, const Json* before);

// Whether the kind is one that a CustomResourceDefinition defines in a cluster, not one that is
// built into Kubernetes: some rules differ.
bool is_custom(const Resource& resource);

// Removes the members that the schema does not have.
void prune(const ServedKind& kind, Json& object);

}  // namespace kube::server
