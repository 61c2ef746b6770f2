// What every object of the API obeys, whatever its kind: metadata, generation, subresources.
#pragma once

#include <string>
#include <string_view>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Removes what a client may not say of an object that is to be created.
void wipe_system_fields(Json& metadata);

// Of an object to be created: generation, and no status where a subresource has it.
void prepare_create(const ServedKind& kind, Json& object);
// Of an update through the object itself, "status" or "scale": what that way may not change is as
// before, and a changed spec counts in metadata.generation.
void prepare_update(const ServedKind& kind, const Json& before, Json& object,
                    std::string_view subresource);

// k8s.io/apimachinery/pkg/api/validation/objectmeta.go. `before` is nullptr for a create.
FieldErrors check_metadata(const ServedKind& kind, const Json& object, const Json* before);

// Kinds that a CustomResourceDefinition would define, in whose API some rules differ.
bool is_custom(const Resource& resource);

// Removes the members that the schema does not have.
void prune(const ServedKind& kind, Json& object);

}  // namespace kube::server
