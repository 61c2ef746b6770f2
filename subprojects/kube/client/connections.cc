#include "kube/client/connections.hh"

#include <algorithm>
#include <map>

namespace kube {
namespace {

// Finds the peer whose eligible connections weigh most together, and the oldest of these. `weight`
// is 0 for a connection that is not eligible.
template <class Weight>
ServerConnection* oldest_of_greediest(ServerConnections& connections, const Weight& weight) {
  std::map<asio::ip::address, std::size_t> totals;
  for (const ServerConnection& each : connections) totals[each.peer] += weight(each);
  ServerConnection* found = nullptr;
  for (ServerConnection& each : connections) {
    if (weight(each) == 0) continue;
    const std::size_t total = totals[each.peer];
    const std::size_t best = found == nullptr ? 0 : totals[found->peer];
    if (total > best || (total == best && each.since < found->since)) found = &each;
  }
  return found;
}

bool is_one_of(const ServerConnection& each, Scarce what) {
  return each.is_stranger && each.has_place == (what == Scarce::kPlaces);
}

bool is_of_strangers(Scarce what) {
  return what == Scarce::kWaiting || what == Scarce::kPlaces;
}

}  // namespace

std::size_t count_strangers(const ServerConnections& connections, Scarce what) {
  return static_cast<std::size_t>(std::ranges::count_if(
      connections, [what](const ServerConnection& each) { return is_one_of(each, what); }));
}

ServerConnection* find_victim(ServerConnections& connections, Scarce what,
                              ServerConnection::Steady now, Milliseconds grace) {
  const auto is_open = [](const ServerConnection& each) {
    return each.stream != nullptr && !each.is_evicted;
  };
  if (is_of_strangers(what)) {
    return oldest_of_greediest(connections, [&](const ServerConnection& each) {
      const bool is_busy = each.phase == ServerConnection::Phase::kHandled;
      return std::size_t{is_open(each) && is_one_of(each, what) && !is_busy &&
                         now - each.since >= grace};
    });
  }
  auto* const stale = oldest_of_greediest(connections, [&](const ServerConnection& each) {
    const bool is_stale = is_open(each) && each.is_unfinished() && now - each.since >= grace;
    if (!is_stale) return std::size_t{0};
    return what == Scarce::kConnections ? std::size_t{1} : each.body_bytes;
  });
  if (stale != nullptr || what == Scarce::kBodyBytes) return stale;
  const auto is_idle = [&](const ServerConnection& each) {
    return std::size_t{is_open(each) && each.phase == ServerConnection::Phase::kIdle};
  };
  const auto is_unfinished = [&](const ServerConnection& each) {
    return is_open(each) && each.is_unfinished();
  };
  if (std::ranges::count_if(connections, is_idle) <
      std::ranges::count_if(connections, is_unfinished))
    return nullptr;
  return oldest_of_greediest(connections, is_idle);
}

std::size_t held_by_evicted(const ServerConnections& connections, Scarce what) {
  std::size_t held = 0;
  for (const ServerConnection& each : connections) {
    if (!each.is_evicted || each.phase == ServerConnection::Phase::kHandled) continue;
    if (is_of_strangers(what) && !is_one_of(each, what)) continue;
    held += what == Scarce::kBodyBytes ? each.body_bytes : 1U;
  }
  return held;
}

}  // namespace kube
