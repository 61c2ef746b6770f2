// Leader election decides which of several replicas may write.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/config/configuration.hh"
#include "kube/client/api_client.hh"
#include "kube/client/clock.hh"
#include "kube/client/lease.hh"
#include "kube/client/make_transport.hh"
#include "kube/client/transport.hh"
#include "kube/manager/log.hh"

namespace trainer {

// Holds the Lease of the configuration, or leads at once if election is off.
//
// The Lease has its own connections: its renewal must not wait behind a burst of other requests.
// Concurrency: the io_context's thread.
class Election {
 public:
  // `ns` is the namespace of the Lease unless the configuration names another. `client_options` are
  // those of every client of the process; the deadline is replaced.
  Election(const kube::MakeTransport& make_transport, kube::asio::io_context& io,
           Configuration::LeaderElection configuration, std::string ns,
           kube::ApiClient::Options client_options, const kube::Log& log);

  // The parameters are those of kube::run_leader_election and LeaseOptions::on_restored.
  kube::Task<void> run(std::function<void()> on_started, std::function<void()> on_stopped,
                       std::function<void()> on_restored);
  kube::ObjectKey key() const;  // the key of the Lease
  // Returns whether no other replica can hold the Lease now. It is false as long as the Lease is
  // not renewed, also if this process was stopped, or the machine asleep, for longer than that
  // takes.
  bool may_write() const;
  // These return the holder of the Lease, as seen last, and the name of this process; "" as long as
  // they are not known.
  const std::string& holder() const { return holder_; }
  const std::string& identity() const { return identity_; }

 private:
  kube::LeaseOptions lease();

  const Configuration::LeaderElection configuration_;
  const std::string ns_;
  const kube::Log& log_;
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  std::unique_ptr<kube::Transport> transport_;
  kube::ApiClient client_;
  kube::Clock::Steady held_until_{};  // by since_boot()
  std::string holder_;
  std::string identity_;
};

}  // namespace trainer
