// The configuration of a shim is made from a pod. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "local/node/env.hh"
#include "local/node/names.hh"
#include "local/node/pod_config.hh"
#include "local/node/volumes.hh"

namespace trainer::node {

// These are the same for all pods of a node.
struct NodeFacts {
  Tier tier = Tier::kPlain;
  bool has_network = false;     // pods have a network of their own (network.hh)
  std::string tier_problem;     // the reason why there is no better one; empty for the best
  kube::StringMap environment;  // the variables of containers, before their own
  std::vector<Mount> mounts;    // in all containers, before their own
  std::string working_dir;      // used if a container names none; empty: the scratch directory
};

// This is the directory in which a pod runs, and its names.
struct PodContext {
  VolumePlaces volumes;
  PodName name;
  PodFacts facts;      // the pod's address among them
  Replacements names;  // names of pods -> addresses, if there is no hosts file
};

// Returns whether the pod asks for the host's ports (spec.hostNetwork).
bool is_on_host_network(const kube::Json& pod);

// Errors: kUnsupported for a pod that this machine will never run, with the field and a way to
// change it; kNotFound for a ConfigMap or Secret that does not exist yet.
kube::Result<PodConfig> make_config(const kube::Json& pod, const Sources& sources,
                                    const PodContext& place, const NodeFacts& node);

}  // namespace trainer::node
