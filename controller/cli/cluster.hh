// This is a connection to the cluster for one subcommand.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/commands.hh"
#include "kube/client/api_client.hh"

namespace trainer {

// Concurrency: the main thread; run() drives everything.
class Cluster {
 public:
  // Errors: an unusable kubeconfig, with load_config()'s text; an exec plugin that failed.
  static kube::Result<std::unique_ptr<Cluster>> connect(
      const ClusterOptions& options, kube::ApiClient::Options client = kube::ApiClient::Options());

  kube::asio::io_context& io() { return io_; }
  kube::ApiClient& client() { return *client_; }
  const std::string& ns() const { return ns_; }

  // Runs the task to its end and returns its result. Rethrows its exceptions.
  template <class T>
  T run(kube::Task<T> task) {
    std::optional<T> answer;
    std::exception_ptr failure;
    kube::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr error, T value) {
      failure = error;
      answer = std::move(value);
      io_.stop();
    });
    io_.restart();
    io_.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(answer).value();
  }

 private:
  Cluster() = default;

  kube::asio::io_context io_{1};
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<kube::ApiClient> client_;
  std::string ns_;
};

// Connects, runs `make(client)`, a task with a Result<void>, and returns the exit code. Errors are
// printed.
template <class Make>
int in_cluster(const ClusterOptions& options, Console& console, const Make& make) {
  auto cluster = Cluster::connect(options);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  const kube::Result<void> done = (*cluster)->run(make((*cluster)->client()));
  if (done) return kExitDone;
  console.err << done.error().message << '\n';
  const kube::ErrorCode code = done.error().code;
  const bool is_unreached = code == kube::ErrorCode::kNetwork || code == kube::ErrorCode::kTimeout;
  return is_unreached ? kExitNoCluster : kExitRefused;
}

// Returns every object of a list; `query` may select some of them. An item that is no JSON is left
// out.
kube::Task<kube::Result<std::vector<kube::Json>>> list_all(kube::ApiClient& client,
                                                           kube::Resource resource, std::string ns,
                                                           std::string query);
// Returns the `query` of objects with this label.
std::string label_query(std::string_view key, std::string_view value);

// `why` and `logs` are about this object.
struct Target {
  const KindRegistration* kind = nullptr;
  std::string name;
  // Kinds of other versions of the same resource, which have the hook, too. open_target() finds out
  // to which of them the object belongs (runtimes/views/created_version.hh).
  std::vector<const KindRegistration*> others = {};
  const kube::Resource& resource() const { return kind->controller.resource(); }
};

// The words are NAME, KIND/NAME or KIND NAME. KIND is singular or plural, in upper or lower case,
// also with ".GROUP". Without KIND it is the first registered kind that has the hook. Errors
// (kInvalid) list the kinds that have the hook.
kube::Result<Target> find_target(const Registry& registry, const std::vector<std::string>& words,
                                 bool (*has_hook)(const KindRegistration& kind));

// `why` and `logs` begin with this.
struct OpenTarget {
  Target target;
  kube::ObjectKey key;
  std::unique_ptr<Cluster> cluster;
};
// Finds the target of the command line and connects. Errors: the exit code, after a message.
tl::expected<OpenTarget, int> open_target(const Registry& registry, std::string_view command,
                                          const std::vector<std::string>& words,
                                          bool (*has_hook)(const KindRegistration& kind),
                                          const ClusterOptions& options, Console& console);

// Prints an error from the cluster and returns the exit code: kExitRefused if an object is not
// found, or the request is forbidden or invalid, else kExitNoCluster.
int report_cluster_error(const kube::Error& error, const kube::Resource& resource,
                         const kube::ObjectKey& key, Console& console);

}  // namespace trainer
