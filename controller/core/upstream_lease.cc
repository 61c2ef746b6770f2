#include "controller/core/upstream_lease.hh"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/system/system_error.hpp>
#include <map>
#include <set>

#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

const kube::Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
constexpr std::string_view kLeaseName = "6d4f6a47.jobset.x-k8s.io";
constexpr std::chrono::seconds kExpiryCheck{1};

// Until when each Lease of that name is held; a released one is not in the map. What a list that is
// under way has not told yet stays as it was.
class LeaseSink final : public kube::WatchSink {
 public:
  LeaseSink(kube::Clock& clock, std::function<void()> on_synced)
      : clock_(clock), on_synced_(std::move(on_synced)) {}
  void begin_list() override {
    is_listing_ = true;
    listed_.clear();
  }
  bool put(std::string_view text) override {
    const auto lease = kube::parse_json(text);
    if (!lease) return false;
    const auto key = kube::ObjectMeta::of(*lease).key();
    if (is_listing_) listed_.insert(key);
    const auto* spec = lease->find("spec");
    const auto renewed = spec ? kube::Time::parse(spec->get_string("renewTime")) : std::nullopt;
    if (!renewed || spec->get_string("holderIdentity").empty()) {
      held_.erase(key);
    } else {
      renew(key, *renewed, std::chrono::seconds(spec->get_int("leaseDurationSeconds", 15)));
    }
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
    const auto now = clock_.steady();
    return std::any_of(held_.begin(), held_.end(),
                       [now](const auto& each) { return now < each.second.until; });
  }

 private:
  struct Held {
    kube::Time renewed;
    kube::Clock::Steady until;
  };

  // One that is seen for the first time may be long dead, which only its own time tells. From then
  // on a renewal counts from when it is seen: its holder's clock may go wrong.
  void renew(const kube::ObjectKey& key, kube::Time renewed, std::chrono::seconds duration) {
    const auto at = held_.find(key);
    if (at == held_.end()) {
      const auto age = std::max(std::chrono::microseconds(0), clock_.now() - renewed);
      held_[key] = {renewed, clock_.steady() + duration - age};
    } else if (at->second.renewed != renewed) {
      at->second = {renewed, clock_.steady() + duration};
    }
  }

  kube::Clock& clock_;
  std::function<void()> on_synced_;
  std::map<kube::ObjectKey, Held> held_;
  bool is_listing_ = false;
  std::set<kube::ObjectKey> listed_;
};

Task<void> tell_changes(const LeaseSink& sink, kube::Clock& clock,
                        std::function<void(bool is_held)> on_change) {
  bool was_held = false;
  while (true) {
    const bool is_held = sink.is_held();
    if (is_held != was_held) on_change(is_held);
    was_held = is_held;
    co_await kube::sleep(clock, kExpiryCheck);
  }
}

}  // namespace

Task<void> follow_upstream_lease(kube::ApiClient& client,
                                 std::function<void(bool is_held)> on_change,
                                 std::function<void()> on_synced) {
  using namespace kube::asio::experimental::awaitable_operators;
  const LeaseSink* known = nullptr;
  // The first answer is told before anybody acts on it.
  LeaseSink sink(client.clock(), [&known, &on_change, &on_synced] {
    on_change(known->is_held());
    on_synced();
  });
  known = &sink;
  kube::WatchOptions options;
  options.field_selector = "metadata.name=" + std::string(kLeaseName);
  try {
    co_await (kube::run_watch(client, kLeases, sink, options) &&
              tell_changes(sink, client.clock(), on_change));
  } catch (const kube::asio::multiple_exceptions&) {
    // Both end by cancellation only: to the caller that is one.
    throw boost::system::system_error(kube::asio::error::operation_aborted);
  }
}

}  // namespace trainer
