// Every scenario needs this of the cluster: requests at a bounded width, and counting watches.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "kube/client/api_client.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/client/task_group.hh"
#include "kube/client/watcher.hh"

namespace trainer::bench {

using Steady = std::chrono::steady_clock;

double seconds_since(Steady::time_point begin);

// Keeps the newest state of every object of one kind in one namespace, and when it last changed.
class Tally final : public kube::WatchSink {
 public:
  using Predicate = std::function<bool(const kube::Json& object)>;
  // `counts` decides whether an object counts, in the state it has.
  explicit Tally(Predicate counts) : counts_(std::move(counts)) {}
  void begin_list() override {}
  bool upsert(std::string_view text) override;
  void end_list() override { is_synced_ = true; }
  bool remove(std::string_view text) override;

  bool is_synced() const { return is_synced_; }
  std::size_t count() const { return counted_; }
  // Returns when count() reached its present value.
  Steady::time_point reached() const { return reached_; }
  // Returns when any object changed last.
  Steady::time_point changed() const { return changed_; }
  // Called with every object that is put; may be empty.
  std::function<void(const kube::Json& object)> on_put;

 private:
  Predicate counts_;
  std::unordered_map<std::string, bool> objects_;
  std::size_t counted_ = 0;
  bool is_synced_ = false;
  Steady::time_point reached_{};
  Steady::time_point changed_{};
};

// Concurrency: its own io_context, run by run().
class Cluster {
 public:
  explicit Cluster(const kube::ClientConfig& config);
  ~Cluster();

  kube::asio::io_context& io() { return io_; }
  kube::ApiClient& client() { return client_; }
  // Runs one task to its end; an exception comes out here.
  void run(kube::Task<void> task);
  // `work(0)` to `work(count - 1)`, at most `width` at a time.
  kube::Task<void> for_each(int count, int width, std::function<kube::Task<void>(int)> work);
  // A watch for as long as the returned group is not cancelled and joined.
  std::unique_ptr<kube::TaskGroup> watch(const kube::Resource& resource, const std::string& ns,
                                         Tally& tally);
  kube::Task<void> wait_until(std::function<bool()> is_true, std::chrono::seconds limit,
                              std::string what);
  kube::Task<void> sleep(kube::Milliseconds time);

  kube::Task<void> make_namespace(std::string name);
  // Deletes a namespace and waits until it is gone, so that its garbage is not the next scenario's
  // load.
  kube::Task<void> remove_namespace(std::string name, bool waits = true);
  // Throws std::runtime_error, with what the server said, when a write is refused.
  template <class Answer>
  static kube::Task<Answer> must(kube::Task<kube::Result<Answer>> request) {
    auto answer = co_await std::move(request);
    if (!answer) throw std::runtime_error(answer.error().message);
    co_return std::move(*answer);
  }

 private:
  kube::asio::io_context io_;
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  std::unique_ptr<kube::Transport> transport_;
  kube::ApiClient client_;
};

}  // namespace trainer::bench
