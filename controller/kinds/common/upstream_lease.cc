#include "controller/kinds/common/upstream_lease.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kube/client/notifier.hh"
#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

constexpr std::chrono::seconds kExpiryCheck{1};
// Upstream's webhooks are read at this interval, and only while there is an ignored Lease.
constexpr std::chrono::seconds kWebhooksCheck{10};
// These are limits of a Lease's duration in seconds. Upstream's default is 15. The API server
// accepts 68 years, and if the holder of such a Lease were gone, no process would replace it for
// that time.
constexpr std::int64_t kNone = 0;
constexpr std::int64_t kLongest = 60;

std::string selector_of(const UpstreamController& upstream) {
  return "metadata.name=" + std::string(upstream.lease);
}

// The sink knows until when each Lease of that name is held; a released one is not in the map.
// While a list is being read, Leases that it has not brought yet do not change. A trusted Lease
// that was held and has expired counts as held until confirm_expired() has asked the API server:
// the watch's connection may be dead.
class LeaseSink final : public kube::WatchSink {
 public:
  LeaseSink(kube::Clock& clock, std::function<void()> on_listed)
      : clock_(clock), on_listed_(std::move(on_listed)) {}
  void trust(std::set<std::string, std::less<>> namespaces) { trusted_ = std::move(namespaces); }
  void begin_list() override {
    is_listing_ = true;
    listed_.clear();
  }
  bool upsert(std::string_view text) override {
    const auto lease = kube::parse_json(text);
    if (!lease) return false;
    if (is_listing_) listed_.insert(kube::ObjectMeta::of(*lease).key());
    take(*lease);
    return true;
  }
  void end_list() override {
    is_listing_ = false;
    std::erase_if(held_, [this](const auto& each) { return !listed_.contains(each.first); });
    is_listed_ = true;
    on_listed_();
  }
  bool remove(std::string_view text) override {
    const auto lease = kube::parse_json(text);
    if (lease) held_.erase(kube::ObjectMeta::of(*lease).key());
    return lease.has_value();
  }
  bool is_listed() const { return is_listed_; }
  bool is_held() const {
    return std::any_of(held_.begin(), held_.end(), [this](const auto& each) {
      return trusted_.contains(each.first.ns) && !each.second.is_over;
    });
  }
  bool has_expired() const {
    return std::any_of(held_.begin(), held_.end(), [this, now = clock_.steady()](const auto& each) {
      return trusted_.contains(each.first.ns) && each.second.has_expired(now);
    });
  }
  bool has(const std::string& ns) const {
    return std::any_of(held_.begin(), held_.end(),
                       [&ns](const auto& each) { return each.first.ns == ns; });
  }
  // The namespaces of Leases that are held and not trusted.
  std::vector<std::string> ignored() const {
    std::vector<std::string> found;
    for (const auto& [key, held] : held_) {
      if (!trusted_.contains(key.ns) && !held.is_over && !held.has_expired(clock_.steady()))
        found.push_back(key.ns);
    }
    return found;
  }
  // Takes the result of a list that was requested at `asked_at`: a Lease that had expired by then
  // and was not renewed is not held any more. If the watch has brought a newer version, that one
  // counts.
  void confirm_expired(const std::vector<Json>& found, kube::Clock::Steady asked_at) {
    for (const Json& lease : found) {
      const auto at = held_.find(kube::ObjectMeta::of(lease).key());
      if (at == held_.end() || at->second.has_expired(asked_at)) take(lease);
    }
    for (auto& [key, held] : held_) held.is_over = held.is_over || held.has_expired(asked_at);
  }

 private:
  struct Held {
    kube::Time renewed;
    kube::Clock::Steady until;
    bool is_over = false;
    bool has_expired(kube::Clock::Steady now) const { return !is_over && until <= now; }
  };

  void take(const Json& lease) {
    const auto key = kube::ObjectMeta::of(lease).key();
    const auto* spec = lease.find("spec");
    const auto renewed = spec ? kube::Time::parse(spec->get_string("renewTime")) : std::nullopt;
    if (!renewed || spec->get_string("holderIdentity").empty()) {
      held_.erase(key);
    } else {
      const auto seconds = spec->get_int("leaseDurationSeconds", 15);
      renew(key, *renewed, std::chrono::seconds(std::clamp(seconds, kNone, kLongest)));
    }
  }

  // A Lease that is seen for the first time may have expired long ago; only its renewTime shows
  // that. After that, a renewal counts from the time when it is seen, because its holder's clock
  // may be wrong.
  void renew(const kube::ObjectKey& key, kube::Time renewed, std::chrono::seconds duration) {
    const auto at = held_.find(key);
    if (at == held_.end()) {
      const std::chrono::microseconds all = duration;
      const auto age = std::clamp(clock_.now() - renewed, std::chrono::microseconds(0), all);
      held_[key] = {renewed, clock_.steady() + all - age, age == all};
    } else if (at->second.renewed != renewed) {
      at->second = {renewed, clock_.steady() + duration};
    }
  }

  kube::Clock& clock_;
  const std::function<void()> on_listed_;
  std::set<std::string, std::less<>> trusted_;
  std::map<kube::ObjectKey, Held> held_;
  bool is_listing_ = false;
  bool is_listed_ = false;
  std::set<kube::ObjectKey> listed_;
};

// Lists the Leases. An error changes nothing; the list is tried again.
Task<void> confirm_expired(LeaseSink& sink, kube::ApiClient& client, std::string selector) {
  const auto asked_at = client.clock().steady();
  std::vector<Json> found;
  std::function<void(std::string_view)> on_item = [&found](std::string_view text) {
    if (auto lease = kube::parse_json(text)) found.push_back(std::move(*lease));
  };
  const auto page = co_await client.list(
      kube::kLeases, "", "fieldSelector=" + kube::percent_encode(selector), std::move(on_item));
  if (page) sink.confirm_expired(found, asked_at);
}

// Returns the namespace of upstream's webhooks, which only administrators write; none if there are
// no such webhooks.
Task<kube::Result<std::set<std::string>>> webhook_namespaces(kube::ApiClient& client,
                                                             std::string name) {
  std::set<std::string> found;
  if (name.empty()) co_return found;
  kube::ObjectKey key;
  key.name = std::move(name);
  const auto object = co_await client.get(kube::kValidatingWebhookConfigurations, std::move(key));
  if (!object && object.error().code == kube::ErrorCode::kNotFound) co_return found;
  if (!object) co_return tl::unexpected(object.error());
  const Json* const webhooks = object->find("webhooks");
  if (!webhooks || !webhooks->is_array()) co_return found;
  for (const Json& webhook : webhooks->as_array()) {
    const Json* const service = webhook.find_path({"clientConfig", "service"});
    if (service) found.emplace(service->get_string("namespace"));
  }
  co_return found;
}

class Follower {
 public:
  Follower(kube::ApiClient& client, UpstreamLeaseOptions options, const kube::Log& log,
           kube::asio::any_io_executor executor)
      : client_(client),
        options_(std::move(options)),
        log_(log),
        listed_(std::move(executor)),
        sink_(client.clock(), [this] { listed_.notify(); }) {
    options_.namespaces.emplace(options_.upstream.ns);
    sink_.trust(options_.namespaces);
  }

  LeaseSink& sink() { return sink_; }

  Task<void> report_changes() {
    while (true) {
      if (sink_.is_listed()) co_await check();
      co_await listed_.wait_for(client_.clock(), kExpiryCheck);
    }
  }

 private:
  Task<void> check() {
    if (!sink_.ignored().empty() && !co_await read_webhooks()) co_return;
    if (sink_.has_expired())
      co_await confirm_expired(sink_, client_, selector_of(options_.upstream));
    report_ignored();
    if (reported_ != sink_.is_held()) options_.on_change(*(reported_ = sink_.is_held()));
    // Reconciles start after the first result.
    if (options_.on_synced) std::exchange(options_.on_synced, nullptr)();
  }

  // Returns false if the webhooks could not be read and nothing was reported yet: the first report
  // waits for them.
  Task<bool> read_webhooks() {
    const auto now = client_.clock().steady();
    if (now < next_read_) co_return true;
    const auto found =
        co_await webhook_namespaces(client_, std::string(options_.upstream.webhooks));
    if (!found) {
      log_.warn("upstream webhooks", {{"why", found.error().message}});
      if (!reported_ && found.error().is_transient()) co_return false;
    } else {
      auto trusted = options_.namespaces;
      trusted.insert(found->begin(), found->end());
      sink_.trust(std::move(trusted));
    }
    next_read_ = now + kWebhooksCheck;
    co_return true;
  }

  // Each namespace is named once, until its Lease is released or deleted.
  void report_ignored() {
    const auto namespaces = sink_.ignored();
    const UpstreamController& upstream = options_.upstream;
    std::erase_if(named_, [this](const std::string& ns) { return !sink_.has(ns); });
    options_.on_ignored(options_.upstream.lease, namespaces.size());
    for (const std::string& ns : namespaces) {
      if (!named_.insert(ns).second) continue;
      log_.warn("upstream Lease ignored",
                {{"lease", fmt::format("{}/{}", ns, upstream.lease)},
                 {"why", upstream.webhooks.empty()
                             ? fmt::format("its namespace is not {}", upstream.ns)
                             : fmt::format("its namespace is neither {} nor that of {}",
                                           upstream.ns, upstream.webhooks)},
                 {"then", fmt::format("if upstream's {} runs there, add the namespace to {}; else "
                                      "delete the Lease",
                                      upstream.name, upstream.setting)}});
    }
  }

  kube::ApiClient& client_;
  UpstreamLeaseOptions options_;
  const kube::Log& log_;
  kube::Notifier listed_;
  LeaseSink sink_;
  kube::Clock::Steady next_read_{};
  std::set<std::string> named_;
  std::optional<bool> reported_;
};

}  // namespace

Task<void> follow_upstream_lease(kube::ApiClient& client, UpstreamLeaseOptions options,
                                 const kube::Log& log) {
  using namespace kube::asio::experimental::awaitable_operators;
  const auto executor = co_await kube::asio::this_coro::executor;
  std::string selector = selector_of(options.upstream);
  Follower follower(client, std::move(options), log, executor);
  kube::WatchOptions watch;
  watch.field_selector = std::move(selector);
  try {
    co_await (kube::run_watch(client, kube::kLeases, follower.sink(), watch) &&
              follower.report_changes());
  } catch (const kube::asio::multiple_exceptions& error) {
    // The other one is cancelled when one of them ends.
    std::rethrow_exception(error.first_exception());
  }
}

}  // namespace trainer
