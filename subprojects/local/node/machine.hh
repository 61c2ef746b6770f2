// A Node shows what this machine has.
#pragma once

#include <map>
#include <string>

#include "kube/model/json.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/time.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

// Returns cpu and memory of this process's share of the machine, with the amounts of `instead` in
// place of those that are found. Amounts of `instead` that are no quantities throw
// std::runtime_error with a sentence.
kube::ResourceList capacity_of_machine(const std::map<std::string, std::string>& instead);

// Returns the labels of the Node object. Pods that share the machine's ports are not scheduled side
// by side.
kube::Json node_labels(const std::string& name, Tier tier);
kube::Json node_status(const std::string& name, const kube::ResourceList& capacity, kube::Time now);

}  // namespace trainer::node
