// The node of local mode runs the pods that are bound to it as processes of this user, like kubelet
// runs containers. It uses everything else through the API.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "kube/client/api_client.hh"
#include "kube/model/error.hh"
#include "kube/server/api.hh"
#include "local/node/options.hh"
#include "local/node/pod_runner.hh"
#include "local/node/tiers.hh"

namespace trainer {

// Guarantees: a pod's processes are started at most once, whenever this process is killed; pods
// that an earlier process has started are adopted: their shims go on, and this process follows
// them; processes whose pod no longer exists are ended. Concurrency: the thread of its io_context.
// Lifecycle: run() in a task group; the io_context ends before this does.
class NodeAgent {
 public:
  using WriteLog = std::function<kube::Task<bool>(std::string piece)>;

  // Finds out what the machine offers, in some milliseconds. Throws std::runtime_error with a
  // sentence if the options cannot be met: a tier that the machine does not offer, a directory that
  // does not exist.
  NodeAgent(kube::asio::io_context& io, kube::ApiClient& client, NodeOptions options);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  // Runs until it is cancelled; the pods go on then.
  kube::Task<void> run();
  // Ends the processes of all pods, with some seconds of grace, and writes how they ended.
  kube::Task<void> stop_pods();
  // Writes the output of a container that the query selects. `write` is first called with "" once
  // there is a log; it returns false if its reader has gone. Errors: kNotFound, kBadRequest in
  // kubelet's words.
  kube::Task<kube::Result<void>> read_logs(kube::server::LogQuery query, WriteLog write);
  NodeStatus status() const { return status_; }

 private:
  using Runner = std::shared_ptr<node::PodRunner>;

  void find_facts();
  void connect_runners();
  void find_tier();
  void find_network(const node::TierProbe& probe);
  kube::Task<void> publish_node();
  kube::Task<void> watch_claims();
  void remove_claims();
  kube::Task<void> watch_pods();
  kube::Task<void> run_pod(Runner runner);
  kube::Task<void> renew_tokens();
  void on_pod(kube::Json pod);
  void forget(const Runner& runner);
  void remove_orphans();
  void names_changed(const node::PodName& name);
  Runner find_runner(const kube::ObjectKey& key) const;

  const NodeOptions options_;
  node::NodeContext node_;
  bool are_pods_listed_ = false;
  NodeStatus status_;
  std::map<std::string, Runner> runners_;  // the runners of all pods, by uid
  std::set<std::string> running_;          // uids whose run() has begun
  // The hosts files of these namespaces and subdomains must be written again.
  std::set<std::pair<std::string, std::string>> changed_names_;
};

}  // namespace trainer
