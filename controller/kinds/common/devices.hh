// The devices of pods, as `trainer get` counts them. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer {

// Returns the devices of so many pods of this template: those of its containers, or of an init
// container that has more. The admin's rules about devices are not known here.
std::int64_t devices_of_pods(std::int64_t pods, const kube::Json& pod_template);
// Returns the devices of all roles of a V1 job or MPIJob, which are in this member of its spec.
std::int64_t devices_of_roles(const kube::Json& job, std::string_view replica_specs);

}  // namespace trainer
