// This is one life of the controller: everything that it has in memory, from its start to its
// crash.
#pragma once

#include <memory>

#include "controller/process/metrics.hh"
#include "kube/manager/manager.hh"
#include "tests/simulation/wire.hh"

namespace trainer::simulation {

class Process {
 public:
  Process(kube::asio::io_context& io, Timeline& timeline, ApiStore& store, Chance chance,
          const Weather& weather, const kube::Log& log, Wire::OnRequest on_request);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Starts the workers as soon as every kind has been listed; call it after every step.
  void tick();
  void deliver(const Change& change) { wire_.deliver(change); }
  void expire_watches() { wire_.expire_watches(); }
  // Nothing of it reaches the server any more. Its memory is free once is_gone().
  void crash();
  bool is_gone() const { return is_gone_; }

 private:
  kube::asio::io_context& io_;
  Chance jitter_;
  Metrics metrics_;
  Wire wire_;
  kube::ApiClient client_;
  kube::Manager manager_;
  bool is_started_ = false;
  bool is_gone_ = false;
};

}  // namespace trainer::simulation
