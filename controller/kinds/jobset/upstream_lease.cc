#include "controller/kinds/jobset/upstream_lease.hh"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/system/system_error.hpp>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

constexpr std::string_view kLeaseName = "6d4f6a47.jobset.x-k8s.io";
constexpr std::chrono::seconds kExpiryCheck{1};
// Limits of a Lease's duration in seconds; the API server accepts more.
constexpr std::int64_t kNone = 0;
constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();

std::string selector() {
  return "metadata.name=" + std::string(kLeaseName);
}

// Until when each Lease of that name is held; a released one is not in the map. While a list is
// being read, Leases that it has not brought yet stay as they were. A Lease that was held and has
// expired counts as held until look_up() confirms that it has: the watch's connection may be dead.
class LeaseSink final : public kube::WatchSink {
 public:
  LeaseSink(kube::Clock& clock, std::vector<std::string> namespaces,
            std::function<void()> on_synced)
      : clock_(clock), namespaces_(std::move(namespaces)), on_synced_(std::move(on_synced)) {}
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
    if (on_synced_) std::exchange(on_synced_, nullptr)();
  }
  bool remove(std::string_view text) override {
    const auto lease = kube::parse_json(text);
    if (lease) held_.erase(kube::ObjectMeta::of(*lease).key());
    return lease.has_value();
  }
  bool is_held() const {
    return std::any_of(held_.begin(), held_.end(),
                       [](const auto& each) { return !each.second.is_over; });
  }
  bool has_run_out() const {
    const auto now = clock_.steady();
    return std::any_of(held_.begin(), held_.end(),
                       [now](const auto& each) { return each.second.has_run_out(now); });
  }
  // Takes the result of a list that was requested at `asked_at`: a Lease that had expired by then
  // and was not renewed is over. Where the watch has brought a newer version, that counts.
  void look_up(const std::vector<Json>& found, kube::Clock::Steady asked_at) {
    for (const Json& lease : found) {
      const auto at = held_.find(kube::ObjectMeta::of(lease).key());
      if (at == held_.end() || at->second.has_run_out(asked_at)) take(lease);
    }
    for (auto& [key, held] : held_) held.is_over = held.is_over || held.has_run_out(asked_at);
  }

 private:
  struct Held {
    kube::Time renewed;
    kube::Clock::Steady until;
    bool is_over = false;
    bool has_run_out(kube::Clock::Steady now) const { return !is_over && until <= now; }
  };

  void take(const Json& lease) {
    const auto key = kube::ObjectMeta::of(lease).key();
    if (!is_followed(key.ns)) return;
    const auto* spec = lease.find("spec");
    const auto renewed = spec ? kube::Time::parse(spec->get_string("renewTime")) : std::nullopt;
    if (!renewed || spec->get_string("holderIdentity").empty()) {
      held_.erase(key);
    } else {
      const auto seconds = spec->get_int("leaseDurationSeconds", 15);
      renew(key, *renewed, std::chrono::seconds(std::clamp(seconds, kNone, kLongest)));
    }
  }

  // All namespaces are watched, whichever are configured: one request, the same RBAC rules.
  bool is_followed(const std::string& ns) const {
    return namespaces_.empty() ||
           std::find(namespaces_.begin(), namespaces_.end(), ns) != namespaces_.end();
  }

  // A Lease that is seen for the first time may have expired long ago, which only its renewTime
  // shows. After that, a renewal counts from when it is seen: its holder's clock may be wrong.
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
  const std::vector<std::string> namespaces_;
  std::function<void()> on_synced_;
  std::map<kube::ObjectKey, Held> held_;
  bool is_listing_ = false;
  std::set<kube::ObjectKey> listed_;
};

// Lists the Leases. An error changes nothing; the list is tried again.
Task<void> look_up(LeaseSink& sink, kube::ApiClient& client) {
  const auto asked_at = client.clock().steady();
  std::vector<Json> found;
  std::function<void(std::string_view)> on_item = [&found](std::string_view text) {
    if (auto lease = kube::parse_json(text)) found.push_back(std::move(*lease));
  };
  const auto page = co_await client.list(
      kube::kLeases, "", "fieldSelector=" + kube::percent_encode(selector()), std::move(on_item));
  if (page) sink.look_up(found, asked_at);
}

// Calls the handler once for every change, first with the result of the first list.
class ChangeNotifier {
 public:
  explicit ChangeNotifier(std::function<void(bool is_held)> on_change)
      : on_change_(std::move(on_change)) {}
  void begin(bool is_held) { notify(is_held); }
  void check(bool is_held) {
    if (reported_ && *reported_ != is_held) notify(is_held);
  }

 private:
  void notify(bool is_held) {
    reported_ = is_held;
    on_change_(is_held);
  }
  std::function<void(bool is_held)> on_change_;
  std::optional<bool> reported_;
};

Task<void> notify_changes(LeaseSink& sink, kube::ApiClient& client, ChangeNotifier& notifier) {
  while (true) {
    if (sink.has_run_out()) co_await look_up(sink, client);
    notifier.check(sink.is_held());
    co_await kube::sleep(client.clock(), kExpiryCheck);
  }
}

}  // namespace

Task<void> follow_upstream_lease(kube::ApiClient& client, std::vector<std::string> namespaces,
                                 std::function<void(bool is_held)> on_change,
                                 std::function<void()> on_synced) {
  using namespace kube::asio::experimental::awaitable_operators;
  const LeaseSink* known = nullptr;
  ChangeNotifier notifier(std::move(on_change));
  // The result of the first list is reported before on_synced(), after which reconciles start.
  LeaseSink sink(client.clock(), std::move(namespaces), [&known, &notifier, &on_synced] {
    notifier.begin(known->is_held());
    on_synced();
  });
  known = &sink;
  kube::WatchOptions options;
  options.field_selector = selector();
  try {
    co_await (kube::run_watch(client, kube::kLeases, sink, options) &&
              notify_changes(sink, client, notifier));
  } catch (const kube::asio::multiple_exceptions& error) {
    // When one of them ends the other is cancelled.
    std::rethrow_exception(error.first_exception());
  }
}

}  // namespace trainer
