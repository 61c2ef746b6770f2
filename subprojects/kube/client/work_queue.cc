#include "kube/client/work_queue.hh"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kube/client/notifier.hh"

namespace kube {

namespace {

using Keys = std::unordered_set<ObjectKey, ObjectKeyHash>;
template <class T>
using ByKey = std::unordered_map<ObjectKey, T, ObjectKeyHash>;

constexpr Milliseconds kFirstBackoff{5};
constexpr Milliseconds kLongestBackoff{1'000'000};
constexpr int kMaxDoublings = 18;  // 5 ms * 2^18 is above the 1000 s where it ends

}  // namespace

struct WorkQueue::State : std::enable_shared_from_this<WorkQueue::State> {
  State(asio::io_context& io, Clock& clock_) : executor(io.get_executor()), clock(clock_) {}

  struct Waiter {
    explicit Waiter(const asio::any_io_executor& executor) : woken(executor) {}
    Notifier woken;
    std::optional<ObjectKey> key;
    bool is_served = false;
  };

  asio::any_io_executor executor;
  Clock& clock;
  std::deque<std::pair<ObjectKey, Clock::Steady>> ready;  // with the time they became so
  Keys queued;                                            // the keys of `ready`
  Keys working;
  Keys dirty;  // added while being worked on
  ByKey<Clock::Steady> due;
  std::set<std::pair<Clock::Steady, ObjectKey>> by_time;  // the same, in order
  ByKey<Clock::Steady>
      answered;  // of what is worked on: the delay that this answers if it succeeds
  std::unique_ptr<Timer> timer;
  Clock::Steady timer_at = Clock::Steady::max();
  ByKey<int> failures;
  std::deque<std::shared_ptr<Waiter>> waiters;
  // The owner's; nullptr once it is gone.
  const std::function<void(std::chrono::steady_clock::duration)>* on_wait = nullptr;
  bool is_closed = false;
  std::uint64_t adds = 0;
  std::uint64_t retries = 0;

  void add(ObjectKey key) {
    if (is_closed) return;
    const bool is_new =
        working.count(key) ? dirty.insert(std::move(key)).second : make_ready(std::move(key));
    if (is_new) ++adds;
  }

  // Also what was counted when it was added. False where the key is ready already.
  bool make_ready(ObjectKey key) {
    if (is_closed || !queued.insert(key).second) return false;
    ready.emplace_back(std::move(key), clock.steady());
    serve();
    return true;
  }

  // Gives ready keys to waiters, both in the order in which they came.
  void serve() {
    while (!waiters.empty() && (is_closed || !ready.empty())) {
      const auto waiter = waiters.front();
      waiters.pop_front();
      waiter->is_served = true;
      if (!is_closed) waiter->key = take();
      waiter->woken.notify();
    }
  }

  ObjectKey take() {
    auto [key, since] = std::move(ready.front());
    ready.pop_front();
    queued.erase(key);
    working.insert(key);
    if (const auto at = due.find(key); at != due.end()) {
      answered.emplace(key, at->second);
      by_time.erase({at->second, key});
      due.erase(at);
    }
    if (on_wait != nullptr && *on_wait) (*on_wait)(clock.steady() - since);
    return key;
  }

  void add_at(ObjectKey key, Clock::Steady when) {
    if (is_closed) return;
    const auto at = due.find(key);
    if (at != due.end()) {
      if (at->second <= when) return;
      by_time.erase({at->second, key});
    }
    due[key] = when;
    by_time.emplace(when, std::move(key));
    set_timer();
  }

  // One alarm, for the earliest key. It is moved only forward: one that fires early finds nothing
  // due and is set again.
  void set_timer() {
    if (by_time.empty() || by_time.begin()->first >= timer_at) return;
    timer_at = by_time.begin()->first;
    timer = clock.wake_at(executor, timer_at, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->on_timer();
    });
  }

  void on_timer() {
    timer_at = Clock::Steady::max();
    const auto now = clock.steady();
    while (!by_time.empty() && by_time.begin()->first <= now) {
      ObjectKey key = by_time.begin()->second;
      by_time.erase(by_time.begin());
      due.erase(key);
      add(std::move(key));
    }
    set_timer();
  }

  // What waits is never handed out, so that only what is being worked on keeps the queue busy.
  void close() {
    is_closed = true;
    timer.reset();
    ready.clear();
    queued.clear();
    due.clear();
    by_time.clear();
    answered.clear();
    serve();
  }
};

WorkQueue::WorkQueue(asio::io_context& io, Clock& clock)
    : state_(std::make_shared<State>(io, clock)) {
  state_->on_wait = &on_wait;
}

WorkQueue::~WorkQueue() {
  close();
  state_->on_wait = nullptr;
}

void WorkQueue::add(ObjectKey key) {
  state_->add(std::move(key));
}

void WorkQueue::add_after(ObjectKey key, Milliseconds delay) {
  if (delay.count() <= 0) {
    state_->add(std::move(key));
  } else {
    state_->add_at(std::move(key), state_->clock.steady() + delay);
  }
}

void WorkQueue::add_failed(ObjectKey key) {
  const int failures = state_->failures[key]++;
  ++state_->retries;
  const auto delay = kFirstBackoff * (std::int64_t{1} << std::min(failures, kMaxDoublings));
  add_after(std::move(key), std::min<Milliseconds>(delay, kLongestBackoff));
}

void WorkQueue::forget(const ObjectKey& key) {
  state_->failures.erase(key);
  state_->answered.erase(key);
}

int WorkQueue::failures(const ObjectKey& key) const {
  const auto at = state_->failures.find(key);
  return at == state_->failures.end() ? 0 : at->second;
}

Task<std::optional<ObjectKey>> WorkQueue::next() {
  const auto state = state_;
  if (state->is_closed) co_return std::nullopt;
  if (!state->ready.empty()) co_return state->take();
  const auto waiter = std::make_shared<State::Waiter>(state->executor);
  state->waiters.push_back(waiter);
  co_await waiter->woken.wait();
  if (!waiter->is_served) {
    const auto at = std::find(state->waiters.begin(), state->waiters.end(), waiter);
    if (at != state->waiters.end()) state->waiters.erase(at);
    co_return std::nullopt;
  }
  const auto asked = co_await asio::this_coro::cancellation_state;
  if (asked.cancelled() != asio::cancellation_type::none && waiter->key) {
    // The one who asked will not come back for it.
    state->working.erase(*waiter->key);
    state->dirty.erase(*waiter->key);
    state->answered.erase(*waiter->key);
    state->make_ready(std::move(*waiter->key));
    co_return std::nullopt;
  }
  co_return std::move(waiter->key);
}

void WorkQueue::done(const ObjectKey& key) {
  state_->working.erase(key);
  if (const auto at = state_->answered.find(key); at != state_->answered.end()) {
    state_->add_at(key, at->second);
    state_->answered.erase(at);
  }
  if (state_->dirty.erase(key) > 0) state_->make_ready(key);
}

void WorkQueue::close() {
  state_->close();
}

std::size_t WorkQueue::depth() const {
  return state_->ready.size();
}

std::uint64_t WorkQueue::adds() const {
  return state_->adds;
}

std::uint64_t WorkQueue::retries() const {
  return state_->retries;
}

bool WorkQueue::is_idle() const {
  return state_->ready.empty() && state_->working.empty();
}

}  // namespace kube
