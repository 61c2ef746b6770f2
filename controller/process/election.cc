#include "controller/process/election.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace trainer {
namespace {

kube::TransportLimits lease_limits() {
  kube::TransportLimits limits;
  limits.max_in_flight = 2;
  return limits;
}

// The deadline is half of the time to renew: after a timeout on a dead connection there is time for
// a second try.
kube::ApiClient::Options with_deadline_of(const Configuration::LeaderElection& configuration,
                                          kube::ApiClient::Options options) {
  options.deadline = configuration.renewDeadline / 2;
  return options;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Election::Election(const kube::MakeTransport& make_transport, kube::asio::io_context& io,
                   Configuration::LeaderElection configuration, std::string ns,
                   kube::ApiClient::Options client_options, const kube::Log& log)
    : configuration_(std::move(configuration)),
      ns_(std::move(ns)),
      log_(log),
      transport_(make_transport(io, lease_limits())),
      client_(*transport_, clock_, random_,
              with_deadline_of(configuration_, std::move(client_options))) {}

kube::Task<void> Election::run(std::function<void()> on_started, std::function<void()> on_stopped,
                               std::function<void()> on_restored) {
  if (!configuration_.leaderElect) {
    on_started();
    co_return;
  }
  kube::LeaseOptions options = lease();
  options.on_restored = std::move(on_restored);
  co_await kube::run_leader_election(client_, std::move(options), std::move(on_started),
                                     std::move(on_stopped));
}

kube::ObjectKey Election::key() const {
  return {configuration_.resourceNamespace.empty() ? ns_ : configuration_.resourceNamespace,
          configuration_.resourceName};
}

bool Election::may_write() const {
  return !configuration_.leaderElect || clock_.since_boot() < held_until_;
}

kube::LeaseOptions Election::lease() {
  kube::LeaseOptions lease;
  lease.key = key();
  lease.identity = identity_ = fmt::format("{}_{:016x}", host_name(), random_.next());
  lease.duration = configuration_.leaseDuration;
  lease.renew_deadline = configuration_.renewDeadline;
  lease.retry_period = configuration_.retryPeriod;
  lease.on_holder = [this](std::string_view holder) {
    holder_ = holder;
    log_.info("leader", {{"holder", std::string(holder)}});
  };
  lease.on_renewed = [this](kube::Clock::Steady until) { held_until_ = until; };
  lease.on_error = [this, key = lease.key](std::string_view why) {
    log_.warn("leader election", {{"lease", key.to_string()}, {"why", std::string(why)}});
  };
  return lease;
}

}  // namespace trainer
