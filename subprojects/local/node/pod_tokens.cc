// The tokens of a running pod are renewed here.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/pod_template.hh"
#include "local/node/pod_runner.hh"
#include "local/node/pod_start.hh"
#include "local/node/volumes.hh"

namespace trainer::node {

namespace {

// The API may make tokens for a shorter time than a pod asks for.
constexpr std::int64_t kLongestUse = 86'400;

}  // namespace

// A kubelet renews a token after 80 percent of its time (kubernetes, pkg/kubelet/token).
kube::Time PodRunner::renewal_of(const std::map<TokenSource, std::string>& tokens) const {
  std::int64_t seconds = kLongestUse;
  for (const auto& [source, token] : tokens) seconds = std::min(seconds, source.seconds);
  return node_.client.clock().now() + std::chrono::seconds(seconds * 4 / 5);
}

bool PodRunner::are_tokens_due() const {
  if (!is_alive_ || is_removed_ || kube::is_pod_over(pod_)) return false;
  if (tokens_due_) return *tokens_due_ <= node_.client.clock().now();
  return !sources_of(pod_).tokens.empty();
}

kube::Task<void> PodRunner::renew_tokens(std::shared_ptr<PodRunner> self) {
  const auto sources = co_await fetch_tokens(self->node_.client, self->pod_);
  // Its directory is removed once it is removed.
  if (self->is_removed_ || !self->is_alive_) co_return;
  kube::Result<void> written;
  if (!sources) {
    written = tl::unexpected(sources.error());
  } else {
    const VolumePlaces places{self->directory_, self->node_.claims.unclaimed()};
    written = write_tokens(self->pod_, *sources, places);
  }
  if (written)
    self->tokens_due_ = self->renewal_of(sources->tokens);
  else
    self->node_.note(fmt::format("pod {}: its tokens cannot be renewed: {}", self->key_.to_string(),
                                 written.error().message));
}

}  // namespace trainer::node
