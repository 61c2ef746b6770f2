#include "kube/client/lease.hh"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <optional>
#include <utility>

#include "kube/client/with_deadline.hh"
#include "kube/model/meta.hh"
#include "kube/model/resources.hh"

namespace kube {

namespace {

constexpr Milliseconds kReleaseDeadline{3'000};
constexpr double kJitter = 1.2;  // k8s.io/client-go/tools/leaderelection: JitterFactor

// These parts of a Lease count, and the time when this process first saw them: clocks of other
// machines are not trusted.
struct Observed {
  std::string resource_version;
  std::string holder;
  Milliseconds duration{0};
  std::int64_t transitions = 0;
  Clock::Steady since;
};

class Election {
 public:
  Election(ApiClient& client, LeaseOptions options)
      : client_(client), options_(std::move(options)) {}

  Task<void> acquire() {
    while (!co_await is_held_within(options_.renew_deadline)) {
      const double factor = 1.0 + kJitter * client_.random().fraction();
      const double pause = static_cast<double>(options_.retry_period.count()) * factor;
      co_await sleep(client_.clock(), Milliseconds(static_cast<std::int64_t>(pause)));
    }
  }

  Task<void> renew() {
    for (;;) {
      co_await sleep(client_.clock(), options_.retry_period);
      const auto deadline = sent_at_ + options_.retry_period + options_.renew_deadline;
      for (;;) {
        // There is one attempt even if this process was stopped for longer than the deadline:
        // perhaps no other process has taken the lease.
        const auto left =
            std::chrono::duration_cast<Milliseconds>(deadline - client_.clock().since_boot());
        if (co_await is_held_within(std::max(options_.retry_period, left))) break;
        if (seen_ && !seen_->holder.empty() && seen_->holder != options_.identity) co_return;
        if (client_.clock().since_boot() + options_.retry_period >= deadline) co_return;
        co_await sleep(client_.clock(), options_.retry_period);
      }
    }
  }

  // Returns true if this process may hold the lease: it does, or a write's answer has not come.
  bool may_hold() const { return is_unsure_ || (seen_ && seen_->holder == options_.identity); }

  Task<void> release() {
    if (options_.on_renewed) options_.on_renewed({});
    const auto released = co_await with_deadline(kReleaseDeadline, give_back());
    if (!released && released.error().code != ErrorCode::kNotFound) report(released.error());
  }

 private:
  Task<bool> is_held_within(Milliseconds limit) {
    const auto held = co_await with_deadline(limit, try_once());
    if (!held) report(held.error());
    co_return held.value_or(false);
  }

  // Creates, takes over or renews the lease; returns false if another process holds it or a request
  // failed.
  Task<bool> try_once() {
    // The holder knows the lease's version and saves the read.
    if (seen_ && seen_->holder == options_.identity) {
      if (co_await write(false)) co_return true;
    }
    const auto found = co_await client_.get(kLeases, options_.key);
    if (!found) {
      if (found.error().code == ErrorCode::kNotFound) co_return co_await create();
      report(found.error());
      co_return false;
    }
    observe(*found);
    if (seen_->holder == options_.identity) co_return co_await write(false);
    const bool is_valid = seen_->since + seen_->duration > client_.clock().steady();
    if (!seen_->holder.empty() && is_valid) co_return false;
    co_return co_await write(true);
  }

  // An interrupted request may have been stored nevertheless. Then the known version is an old one,
  // and the lease is read first.
  Task<Result<void>> give_back() {
    bool is_known = !is_unsure_;
    for (;;) {
      if (!is_known) {
        const auto found = co_await client_.get(kLeases, options_.key);
        if (!found) co_return tl::unexpected(found.error());
        observe(*found);
        if (seen_->holder != options_.identity) co_return Result<void>();
      }
      const auto written =
          co_await client_.merge_patch(kLeases, options_.key, patch_of(spec_without_holder()));
      if (written) co_return Result<void>();
      if (written.error().code != ErrorCode::kConflict) co_return tl::unexpected(written.error());
      is_known = false;
    }
  }

  Task<bool> create() {
    Json object = Json::object(
        {{"apiVersion", kLeases.api_version()},
         {"kind", kLeases.kind},
         {"metadata", Json::object({{"name", options_.key.name}, {"namespace", options_.key.ns}})},
         {"spec", spec_of_holder(true, 0)}});
    begin_write();
    co_return accept(co_await client_.create(kLeases, std::move(object)));
  }

  Task<bool> write(bool is_takeover) {
    const std::int64_t transitions = seen_->transitions + (is_takeover ? 1 : 0);
    Json patch = patch_of(spec_of_holder(is_takeover, transitions));
    begin_write();
    co_return accept(co_await client_.merge_patch(kLeases, options_.key, std::move(patch)));
  }

  void begin_write() {
    is_unsure_ = true;
    sent_at_ = client_.clock().since_boot();
  }

  Json spec_of_holder(bool is_new, std::int64_t transitions) const {
    const std::string now = client_.clock().now().to_micro_string();
    Json spec = Json::object({{"holderIdentity", options_.identity}, {"renewTime", now}});
    spec.set("leaseDurationSeconds",
             std::chrono::duration_cast<std::chrono::seconds>(options_.duration).count());
    spec.set("leaseTransitions", transitions);
    if (is_new) spec.set("acquireTime", now);
    return spec;
  }

  // client-go also leaves behind a lease of one second.
  Json spec_without_holder() const {
    const std::string now = client_.clock().now().to_micro_string();
    Json spec = Json::object({{"holderIdentity", ""}, {"leaseDurationSeconds", 1}});
    spec.set("renewTime", now);
    spec.set("acquireTime", now);
    return spec;
  }

  // Only the version that was seen is changed: the first writer wins.
  Json patch_of(Json spec) const {
    Json patch = Json::object({{"spec", std::move(spec)}});
    if (seen_) patch.set("metadata", Json::object({{"resourceVersion", seen_->resource_version}}));
    return patch;
  }

  bool accept(const Result<std::string>& answer) {
    const auto written = answer.and_then([](const std::string& text) { return parse_json(text); });
    if (!written) {
      // Another process was faster, which is no error in an election.
      if (written.error().code != ErrorCode::kConflict &&
          written.error().code != ErrorCode::kAlreadyExists) {
        report(written.error());
      }
      return false;
    }
    observe(*written);
    if (options_.on_renewed)
      options_.on_renewed(sent_at_ + (options_.duration + options_.renew_deadline) / 2);
    return true;
  }

  void report(const Error& error) const {
    if (error.code == ErrorCode::kCancelled) return;  // asked to end: nothing failed
    if (options_.on_error) options_.on_error(error.message);
  }

  void observe(const Json& lease) {
    is_unsure_ = false;
    const Json& spec = lease.get("spec");
    Observed now;
    now.resource_version = lease.get("metadata").get_string("resourceVersion");
    now.holder = spec.get_string("holderIdentity");
    now.transitions = spec.get_int("leaseTransitions");
    now.duration = std::chrono::seconds(spec.get_int("leaseDurationSeconds"));
    now.since = client_.clock().steady();
    if (seen_ && seen_->resource_version == now.resource_version) return;
    if (seen_ && is_newer_version(seen_->resource_version, now.resource_version) &&
        options_.on_restored)
      options_.on_restored();
    const bool is_new_holder = !seen_ || seen_->holder != now.holder;
    seen_ = std::move(now);
    if (is_new_holder && options_.on_holder) options_.on_holder(seen_->holder);
  }

  ApiClient& client_;
  LeaseOptions options_;

  std::optional<Observed> seen_;
  Clock::Steady sent_at_;  // the time of the last write, by since_boot()
  // A write was begun, and nothing has shown since then who holds the lease.
  bool is_unsure_ = false;
};

// Returns false if the task was cancelled.
Task<bool> ended_by_itself(Task<void> task) {
  try {
    co_await std::move(task);
    co_return true;
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
    co_return false;
  }
}

}  // namespace

Task<void> run_leader_election(ApiClient& client, LeaseOptions options,
                               std::function<void()> on_started, std::function<void()> on_stopped) {
  Election election(client, std::move(options));
  if (co_await ended_by_itself(election.acquire())) {
    on_started();
    const bool is_lost = co_await ended_by_itself(election.renew());
    on_stopped();
    if (is_lost) co_return;
  }
  // From here on only the deadline of the release ends this task.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  if (election.may_hold()) co_await election.release();
  throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace kube
