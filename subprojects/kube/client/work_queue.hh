// Keys wait here for a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kube/client/clock.hh"
#include "kube/client/task.hh"
#include "kube/model/meta.hh"

namespace kube {

// Guarantees: a key is queued at most once. It is never handed out while it is being worked on; if
// it was added meanwhile it is handed out again after done(). The earliest of several delays for a
// key wins. A failing key backs off 5 ms, 10 ms, ... 1000 s. When a key is handed out, its pending
// delay is dropped: it comes back only if the work fails. So a worker does all that is due for the
// key, and calls add_after() again for what is due later. Namespaces take turns, one key each;
// within a namespace the first key to become ready goes first. So a key that is added again goes
// behind all that its namespace has ready. Concurrency: the io_context thread. Lifecycle: close()
// drops the keys that wait and makes every waiting and later next() return nullopt. Cost: O(1) for
// a ready key, plus a step for each namespace that already has its share of the workers; O(log n)
// for delays.
class WorkQueue {
 public:
  static constexpr Milliseconds kLongestBackoff{1'000'000};

  WorkQueue(asio::io_context& io, Clock& clock);
  ~WorkQueue();
  // At most `workers` workers call next(). From now on a namespace that has some of them gets
  // another one only while (workers that it has) < `share` * (workers that would then be free), so
  // that other namespaces find a free one: with 32 and 7 one namespace gets 28, two get 29. Before
  // this call there is no bound.
  void share_workers(std::size_t workers, std::size_t share);
  void add(ObjectKey key);
  void add_after(ObjectKey key, Milliseconds delay);
  // This is add_after with this key's backoff, which doubles up to `longest`.
  void add_rate_limited(ObjectKey key, Milliseconds longest = kLongestBackoff);
  // It is called after a success, before done(): the backoff starts again.
  void forget(const ObjectKey& key);
  int failures(const ObjectKey& key) const;
  Task<std::optional<ObjectKey>> next();
  void done(const ObjectKey& key);
  void close();
  std::size_t depth() const;    // keys ready to be handed out
  std::size_t delayed() const;  // keys whose time has not come
  // Returns some of the keys that are ready, namespace by namespace; at most `limit`.
  std::vector<ObjectKey> ready_keys(std::size_t limit) const;
  // These count since the start, for metrics: keys that were added and not waiting already (delayed
  // ones once their time has come), and calls of add_rate_limited().
  std::uint64_t adds() const;
  std::uint64_t retries() const;
  bool is_idle() const;  // nothing ready and nothing being worked on (delayed keys do not count)
  // It is called with the time that each key waited between ready and handed out, for metrics; may
  // be empty.
  std::function<void(std::chrono::steady_clock::duration)> on_wait;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kube
