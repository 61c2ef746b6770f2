// All of this runs on the server's thread of local mode.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/make_transport.hh"
#include "kube/manager/log.hh"
#include "kube/server/api.hh"
#include "kube/server/object_store.hh"
#include "local/node/agent.hh"
#include "local/server/custom_kinds.hh"
#include "local/server/housekeeping.hh"
#include "local/server/local_state.hh"
#include "local/server/serve.hh"
#include "local/server/write_admission.hh"

namespace trainer {

struct LocalServerOptions {
  std::optional<NodeOptions> node;  // nullopt: there is none
  MakeAdmission make_admission;     // empty: every write is allowed unchanged
  // After this time without work on_idle is called, unless kStaysFile was made since the start; 0:
  // never.
  std::chrono::seconds idle{0};
  // It is called once, on the server's thread; also if the state directory was removed.
  std::function<void()> on_idle;
};

// Lifecycle: start() restores the objects, listens and starts the thread; stop() ends it in order,
// and so does the destructor. Concurrency: one thread for all members.
class LocalServer {
 public:
  // `log` outlives this.
  LocalServer(LocalState state, kube::server::ServedKinds kinds, LocalServerOptions options,
              const kube::Log& log);
  ~LocalServer() { stop(); }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // Errors are a sentence for a person: the database cannot be read, no space.
  kube::Result<void> start();
  // Returns "https://127.0.0.1:PORT"; the kubeconfig in the state directory has it, too.
  const std::string& address() const { return address_; }
  const StateDirectory& state() const { return *state_.directory; }
  const Access& access() const { return state_.access; }
  // Returns the state of the node at its start; nullopt without one.
  const std::optional<NodeStatus>& node_status() const { return node_status_; }
  // Returns the differences from the last start, in sentences that are printed once.
  const std::vector<std::string>& changes() const { return changes_; }
  // Returns a sentence for each object that this start could not read.
  const std::vector<std::string>& unreadable() const { return unreadable_; }
  // Clients in this process, such as the control loops, use these. Each transport ends before
  // stop(), and is used on the thread of its io_context.
  kube::MakeTransport transports();
  // Runs on the server's thread: see Journal.
  void fill_reserve();
  // Stops the running pods, then everything else.
  void stop();

 private:
  kube::server::Api::Environment environment();
  ApiServer::Hooks hooks();
  kube::Result<void> restore();
  kube::Result<void> restore(const std::vector<kube::Resource>& resources);
  kube::Result<void> listen();
  void create_base_objects();
  void forget_node();
  void run();
  bool has_work() const;
  kube::Task<void> await_idle();
  kube::Task<void> shut_down();

  LocalState state_;
  const LocalServerOptions options_;
  const kube::Log& log_;
  std::string address_;
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  kube::server::ServedKinds kinds_;
  kube::asio::io_context io_{1};
  kube::asio::executor_work_guard<kube::asio::io_context::executor_type> work_;
  kube::server::ObjectStore store_;
  kube::server::Api api_;
  ApiServer server_;
  std::unique_ptr<kube::Transport> admission_transport_;
  kube::ApiClient admission_client_;
  std::unique_ptr<WriteAdmission> admission_;  // nullptr: every write is allowed unchanged
  // These two exist once the objects are restored.
  std::optional<CustomKinds> custom_kinds_;
  std::optional<Housekeeping> housekeeping_;
  std::unique_ptr<kube::Transport> node_transport_;
  kube::ApiClient node_client_;
  std::optional<NodeAgent> node_;
  std::optional<NodeStatus> node_status_;
  std::vector<std::string> changes_;
  std::vector<std::string> unreadable_;
  kube::TaskGroup tasks_;
  std::thread thread_;
};

}  // namespace trainer
