// A pod is started here: its objects are read, its directory is made, its shim is started.
#pragma once

#include <sys/types.h>

#include <string>

#include "kube/client/api_client.hh"
#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "local/node/env.hh"
#include "local/node/make_config.hh"
#include "local/node/spawn.hh"

namespace trainer::node {

// Reads ConfigMaps, Secrets and PersistentVolumeClaims that a pod names, and gets its tokens.
kube::Task<kube::Result<Sources>> fetch_sources(kube::ApiClient& client, kube::Json pod);
// Gets the tokens alone.
kube::Task<kube::Result<Sources>> fetch_tokens(kube::ApiClient& client, kube::Json pod);

// Makes the pod's directory, with its volumes and this text as its hosts file, and starts its shim:
// a child process. Errors: those of make_config() and make_volumes(); kConflict if another shim
// holds the pod.
kube::Result<pid_t> start_shim(const kube::Json& pod, const Sources& sources,
                               const PodContext& place, const NodeFacts& facts,
                               const std::string& hosts, const Command& shim);

}  // namespace trainer::node
