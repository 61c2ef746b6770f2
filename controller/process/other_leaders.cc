#include "controller/process/other_leaders.hh"

#include <map>
#include <set>
#include <utility>

#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

constexpr std::chrono::seconds kPause{30};
constexpr std::size_t kMaxText = 256;  // any user with a namespace can write a Lease

struct Held {
  std::string holder;
  std::string renewed;
};
using ByNamespace = std::map<std::string, Held>;

// Returns those of this name in other namespaces. The API server answers from its cache, which has
// many Leases of machines.
Task<kube::Result<ByNamespace>> held_elsewhere(kube::ApiClient& client, kube::ObjectKey own) {
  ByNamespace found;
  std::function<void(std::string_view)> on_item = [&found, &own](std::string_view text) {
    const auto lease = kube::parse_json(text);
    const Json* const spec = lease ? lease->find("spec") : nullptr;
    if (!spec || spec->get_string("holderIdentity").empty()) return;
    const std::string ns = kube::ObjectMeta::of(*lease).ns;
    if (ns == own.ns) return;
    found[ns] = {keep_head(spec->get_string("holderIdentity"), kMaxText),
                 keep_head(spec->get_string("renewTime"), kMaxText)};
  };
  std::string query =
      "fieldSelector=" + kube::percent_encode("metadata.name=" + own.name) + "&resourceVersion=0";
  const auto page = co_await client.list(kube::kLeases, "", std::move(query), std::move(on_item));
  if (!page) co_return tl::unexpected(page.error());
  co_return found;
}

}  // namespace

Task<void> look_for_other_leaders(
    kube::ApiClient& client, kube::ObjectKey own,
    std::function<void(std::string_view name, std::size_t count)> on_count, const kube::Log& log) {
  ByNamespace before;
  std::set<std::string> named;
  std::string last_error;
  for (;; co_await kube::sleep(client.clock(), kPause)) {
    auto found = co_await held_elsewhere(client, own);
    const std::string error = found ? std::string() : found.error().message;
    if (error != std::exchange(last_error, error) && !error.empty())
      log.warn("cannot look for other leaders", {{"why", error}});
    if (!found) continue;
    std::erase_if(named, [&found](const auto& ns) { return !found->contains(ns); });
    std::size_t count = 0;
    for (const auto& [ns, held] : *found) {
      const auto known = before.find(ns);
      if (known == before.end() || known->second.renewed == held.renewed) continue;
      ++count;
      if (!named.insert(ns).second) continue;
      log.error("another leader", {{"lease", ns + "/" + own.name},
                                   {"holder", held.holder},
                                   {"why", "both reconcile the same objects"},
                                   {"then", "remove one of the installations"}});
    }
    on_count(own.name, count);
    before = std::move(*found);
  }
}

}  // namespace trainer
