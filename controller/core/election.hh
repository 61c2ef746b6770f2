// Which of several controllers may write.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/config/configuration.hh"
#include "controller/core/log.hh"
#include "kube/client/api_client.hh"
#include "kube/client/clock.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/client/lease.hh"
#include "kube/client/transport.hh"

namespace trainer {

// Holds the Lease of the configuration, or leads at once where no election is wanted.
//
// The Lease has connections of its own: its renewal must not wait behind a burst.
// Concurrency: the io_context's thread.
class Election {
 public:
  // `ns`: where the Lease lives unless the configuration says otherwise. `client_options`: what the
  // process has of every client; the deadline is replaced.
  Election(kube::asio::io_context& io, const kube::ClientConfig& client,
           Configuration::LeaderElection configuration, std::string ns,
           kube::ApiClient::Options client_options, const Log& log);

  // As kube::run_leader_election.
  kube::Task<void> run(std::function<void()> on_started, std::function<void()> on_stopped);

 private:
  kube::LeaseOptions lease();

  const Configuration::LeaderElection configuration_;
  const std::string ns_;
  const Log& log_;
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  std::unique_ptr<kube::Transport> transport_;
  kube::ApiClient client_;
};

}  // namespace trainer
