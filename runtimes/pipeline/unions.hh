// In a union, one member of an object replaces another: these are the unions of the pod schema
// (core/v1).
#pragma once

#include <span>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace trainer::pipeline {

// The API server refuses an object of this field that has two of the members, and a merge member by
// member would make one.
struct PodUnion {
  std::string_view field;  // "env", "livenessProbe": an object, or a list of such
  std::span<const std::string_view> members;  // empty: all except `name`
};
std::span<const PodUnion> pod_unions();

// Returns the profiles in which `localhostProfile` is only for the type Localhost.
std::span<const std::string_view> pod_profiles();

// Merges a patch into a JobSet's spec: a strategic merge, in which a member of a union that the
// patch sets replaces the former member. kubectl's merge leaves both, and expects the user to
// remove one; a runtime patch cannot remove anything. Errors are those of kube::strategic_merge().
kube::Result<kube::Json> merge_runtime_patch(kube::Json spec, const kube::Json& patch);

}  // namespace trainer::pipeline
