// This is the life of one pod on this node: the start of its shim, or its adoption (an earlier
// daemon has started it), its status, its end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "kube/client/api_client.hh"
#include "kube/client/events.hh"
#include "kube/client/notifier.hh"
#include "kube/client/task_group.hh"
#include "local/node/claims.hh"
#include "local/node/directory_watcher.hh"
#include "local/node/make_config.hh"
#include "local/node/names.hh"
#include "local/node/network.hh"
#include "local/node/options.hh"
#include "local/node/pod_status.hh"
#include "local/node/readiness.hh"

namespace trainer::node {

// All pods of a node share this, which outlives them.
struct NodeContext {
  NodeContext(kube::asio::io_context& io_, kube::ApiClient& client_, const NodeOptions& options_)
      : io(io_),
        client(client_),
        options(options_),
        claims(options_.state),
        events(client_, "kubelet"),
        directories(io_.get_executor()),
        tasks(io_.get_executor(), [this](std::string_view task, std::string_view what) {
          note(std::string(task) + ": " + std::string(what));
        }) {}

  std::filesystem::path pods() const { return options.state / "pods"; }
  void note(std::string_view text) const {
    if (options.on_note) options.on_note(text);
  }
  // Connects to the network of pods, if they have one, or starts it. It starts it again if the
  // process that has it was killed: then running pods reach no new pod.
  kube::Result<void> join_network();
  // Removes the directory with its contents; on another thread, since it may be large.
  void remove_later(std::filesystem::path directory) {
    boost::asio::post(removals, [directory = std::move(directory)] {
      std::error_code ignored;
      std::filesystem::remove_all(directory, ignored);
    });
  }

  kube::asio::io_context& io;
  kube::ApiClient& client;
  const NodeOptions& options;
  ClaimFolders claims;
  NodeFacts facts;
  kube::ResourceList allocatable;
  AddressTable addresses;
  std::optional<PodNetwork> network;  // see join_network()
  kube::EventRecorder events;
  DirectoryWatcher directories;
  kube::TaskGroup tasks;                 // all of the node's
  boost::asio::thread_pool removals{1};  // removals of directories
  // Returns the pods of a namespace by all their names, and the pods that one finds by name. The
  // agent has the function; it is called while a pod starts.
  std::function<Replacements(const PodName& of)> replacements;
  std::function<std::map<PodName, std::string>(const PodName& of)> neighbours;
  // Returns whether another pod's processes have this address.
  std::function<bool(const std::string& address, const std::string& uid)> is_taken;
};

inline constexpr const char* kHostAddress = "127.0.0.1";

// Concurrency: the io_context's thread. Lifecycle: shared, since waits for descriptors refer to it.
class PodRunner : public std::enable_shared_from_this<PodRunner> {
 public:
  PodRunner(NodeContext& node, kube::Json pod);

  // Handles a watch event of the pod: it was changed, or deleted.
  void update(kube::Json pod);
  void remove();
  // Runs until the pod is removed and its processes are gone. It is called once, for a pod that is
  // bound to this node.
  kube::Task<void> run();
  // Ends its processes as a deletion would, without deleting it.
  void stop(int grace);

  const kube::Json& pod() const { return pod_; }
  const kube::ObjectKey& key() const { return key_; }
  const PodName& name() const { return name_; }
  const std::string& uid() const { return uid_; }
  // Returns the address of its names; other pods' hosts files have it as soon as the pod exists.
  std::string address() const;
  // Returns whether a shim holds it.
  bool has_processes() const { return is_alive_; }
  // Returns whether its status is still updated from the reports of its shim.
  bool is_followed() const { return is_followed_; }
  bool is_running(std::string_view container) const;
  // Returns whether it has ended and will start again.
  bool is_restarting(std::string_view container) const;
  const std::filesystem::path& directory() const { return directory_; }
  // Returns whether it has not ended, and mounts this folder or one in it. (In tiers without
  // mounts: false.)
  bool uses(const std::filesystem::path& folder) const;
  // Returns whether it has tokens that will expire soon, or that an earlier daemon has written.
  bool are_tokens_due() const;
  // Writes new tokens. If that fails, they stay due.
  static kube::Task<void> renew_tokens(std::shared_ptr<PodRunner> self);
  // Writes its hosts file again, if it has one.
  void refresh_hosts() const;

 private:
  kube::Task<bool> start();
  kube::Task<kube::Result<void>> try_start();
  kube::Time renewal_of(const std::map<TokenSource, std::string>& tokens) const;
  kube::Result<void> launch(const Sources& sources);
  std::string hosts() const;  // the text of its hosts file
  const kube::Json& report_on(std::string_view container) const;
  bool adopt();
  kube::Task<void> follow();
  void observe_shim(pid_t pid);
  void await_exit();
  void check_shim();
  void read_report();
  void end_as_killed();
  void record(std::string_view type, std::string_view reason, std::string message);
  kube::Task<bool> write(kube::Json status);
  kube::Task<void> await_removal();
  kube::Task<void> end_processes();
  Fd socket_to_pods() const;
  void start_probes();
  static kube::Task<void> probe(std::shared_ptr<PodRunner> self, std::string container,
                                ReadinessProbe probe);
  kube::Task<void> pause(kube::Milliseconds time);
  StatusFacts status_facts() const;
  bool is_over() const { return report_.get_bool("isOver"); }
  bool is_deleting() const;
  int grace() const;      // the grace period of its deletion
  int own_grace() const;  // the grace period of its spec
  void note_start();
  std::optional<kube::Time> deadline() const;
  void touch();

  NodeContext& node_;
  kube::Json pod_;
  const std::string uid_;
  const kube::ObjectKey key_;
  const PodName name_;
  const std::filesystem::path directory_;
  kube::Json report_;  // the shim's status.json; null before there is one
  std::map<std::string, bool, std::less<>> is_ready_;
  bool is_removed_ = false;
  bool is_alive_ = false;  // its lock is held
  bool is_followed_ = false;
  bool has_exited_ = false;  // the shim that was observed
  pid_t child_ = -1;         // the shim, if this process has started it
  std::optional<boost::asio::posix::stream_descriptor> shim_;
  std::optional<int> asked_grace_;
  // This is status.startTime by the steady clock, from when it is known here: a clock that is set,
  // or a machine that sleeps, moves no deadline.
  std::optional<kube::Clock::Steady> started_;
  // By the clock of the tokens' times, which may be set. nullopt: this daemon has written none.
  std::optional<kube::Time> tokens_due_;
  bool is_late_ = false;  // its deadline has passed, and it was asked to end
  kube::Notifier changed_;
  std::uint64_t changes_ = 0;
};

}  // namespace trainer::node
