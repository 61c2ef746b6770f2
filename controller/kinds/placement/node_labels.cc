#include "controller/kinds/placement/node_labels.hh"

#include <utility>

#include "kube/model/resources.hh"

namespace trainer {

kube::Task<kube::Result<std::optional<kube::StringMap>>> read_node_labels(kube::ApiClient& client,
                                                                          std::string node) {
  kube::ObjectKey key;
  key.name = std::move(node);
  const auto found = co_await client.get(kube::kNodes, key);
  if (found) co_return kube::ObjectMeta::of(*found).labels;
  if (found.error().code == kube::ErrorCode::kNotFound) co_return std::nullopt;
  co_return tl::unexpected(found.error().at("Node " + key.name));
}

}  // namespace trainer
