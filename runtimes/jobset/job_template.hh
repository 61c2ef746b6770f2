// These functions read the JobTemplateSpec of a replicated job, which stays Json.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "api/jobset.hh"

namespace trainer::jobset {

// Returns template.spec; an empty value if it is absent.
const kube::Json& job_spec_of(const ReplicatedJob& replicated_job);
// Returns template.spec.template.spec.
const kube::Json& pod_spec_of(const ReplicatedJob& replicated_job);
std::optional<std::int64_t> job_number(const ReplicatedJob& replicated_job, std::string_view name);
bool is_indexed(const ReplicatedJob& replicated_job);
// The names of the volumeMounts of all containers and init containers.
std::set<std::string_view> mounted_volumes(const kube::Json& pod_spec);

// Returns the member as an object or array. A member of another type is replaced: the API server
// cannot have stored it.
kube::Json& object_at(kube::Json& parent, std::string_view name);
kube::Json& array_at(kube::Json& parent, std::string_view name);

}  // namespace trainer::jobset
