// A Node's labels, read live: nodes are not watched.
#pragma once

#include <optional>
#include <string>

#include "kube/client/api_client.hh"
#include "kube/model/meta.hh"

namespace trainer {

// nullopt when there is no such node. Errors: those of the API server, with the node's name.
kube::Task<kube::Result<std::optional<kube::StringMap>>> read_node_labels(kube::ApiClient& client,
                                                                          std::string node);

}  // namespace trainer
