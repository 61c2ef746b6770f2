// These are the single values of a patch, each with the path that it sets.
#pragma once

#include <functional>
#include <string>

#include "kube/model/json.hh"
#include "kube/model/patch.hh"

namespace trainer::pipeline {

// Calls `visit` for every scalar, null and atomic list below `patch`, in document order. Items of
// lists that merge by a key are named by it:
// "spec.replicatedJobs[node].template.spec.template.spec.nodeSelector[pool]". The keys themselves
// are not visited.
void visit_leaves(
    const kube::Json& patch, const std::string& prefix, const kube::MergeKeys& keys,
    const std::function<void(const std::string& path, const kube::Json& value)>& visit);

}  // namespace trainer::pipeline
