#include "controller/core/upstream_lease.hh"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <map>

#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

const kube::Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
constexpr std::string_view kLeaseName = "6d4f6a47.jobset.x-k8s.io";
constexpr std::chrono::seconds kExpiryCheck{1};

// Until when each Lease of that name is held; a released one is not in the map.
class LeaseSink final : public kube::WatchSink {
 public:
  explicit LeaseSink(std::function<void()> on_synced) : on_synced_(std::move(on_synced)) {}
  void begin_list() override { held_until_.clear(); }
  bool put(std::string_view text) override {
    const auto lease = kube::parse_json(text);
    if (!lease) return false;
    const auto key = kube::ObjectMeta::of(*lease).key();
    const auto* spec = lease->find("spec");
    const auto renewed = spec ? kube::Time::parse(spec->get_string("renewTime")) : std::nullopt;
    if (!renewed || spec->get_string("holderIdentity").empty()) {
      held_until_.erase(key);
    } else {
      held_until_[key] = *renewed + std::chrono::seconds(spec->get_int("leaseDurationSeconds", 15));
    }
    return true;
  }
  void end_list() override {
    if (on_synced_) std::exchange(on_synced_, nullptr)();
  }
  bool remove(std::string_view text) override {
    const auto lease = kube::parse_json(text);
    if (lease) held_until_.erase(kube::ObjectMeta::of(*lease).key());
    return lease.has_value();
  }
  bool is_held(kube::Time now) const {
    for (const auto& [key, until] : held_until_) {
      if (now < until) return true;
    }
    return false;
  }

 private:
  std::function<void()> on_synced_;
  std::map<kube::ObjectKey, kube::Time> held_until_;
};

Task<void> tell_changes(const LeaseSink& sink, kube::Clock& clock,
                        std::function<void(bool is_held)> on_change) {
  kube::asio::steady_timer timer(co_await kube::asio::this_coro::executor);
  bool was_held = false;
  while (true) {
    const bool is_held = sink.is_held(clock.now());
    if (is_held != was_held) on_change(is_held);
    was_held = is_held;
    timer.expires_after(kExpiryCheck);
    co_await timer.async_wait(kube::asio::use_awaitable);
  }
}

}  // namespace

Task<void> follow_upstream_lease(kube::ApiClient& client,
                                 std::function<void(bool is_held)> on_change,
                                 std::function<void()> on_synced) {
  using namespace kube::asio::experimental::awaitable_operators;
  const LeaseSink* known = nullptr;
  // The first answer is told before anybody acts on it.
  LeaseSink sink([&known, &client, &on_change, &on_synced] {
    on_change(known->is_held(client.clock().now()));
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
