// A Node's labels are read from the API server, since nodes are not watched.
#pragma once

#include <optional>
#include <string>

#include "kube/client/api_client.hh"
#include "kube/model/meta.hh"

namespace trainer {

// Returns nullopt if there is no such node. Errors are those of the API server, with the node's
// name.
kube::Task<kube::Result<std::optional<kube::StringMap>>> read_node_labels(kube::ApiClient& client,
                                                                          std::string node);

}  // namespace trainer
