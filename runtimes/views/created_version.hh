// One CRD may serve several versions without conversion, and each version may have a controller of
// its own. Then an object belongs to the version at which it was created. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/json_cursor.hh"

namespace trainer {

// This annotation names the version at which an object was created ("v1"). A webhook writes it
// where it is needed: once clients of another version have written the object, nothing else shows
// the version for certain.
inline constexpr std::string_view kCreatedVersionKey = "trainer.kubeflow.org/created-version";

// Returns the version that the annotation names ("v2beta1"); else that of the oldest entry of
// metadata.managedFields that is about the object itself; "" if there is neither.
std::string_view created_version(const kube::Json& object);

// The members of metadata that created_version() reads.
std::vector<kube::JsonFilter> seen_of_created_version();
// A fingerprint of stored objects (kube/manager/stored_object.hh); nullopt if no version shows.
std::optional<std::uint64_t> version_fingerprint(const kube::Json& object);
// Returns whether the object belongs to the controller of this version. An object that shows no
// version has no members: the controllers of all versions may say so.
bool is_created_at(std::optional<std::uint64_t> fingerprint, std::string_view version);

}  // namespace trainer
