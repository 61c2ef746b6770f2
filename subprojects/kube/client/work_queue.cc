#include "kube/client/work_queue.hh"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "kube/client/notifier.hh"

namespace kube {

namespace {

constexpr Milliseconds kFirstBackoff{5};
constexpr int kMaxDoublings = 18;  // 5 ms * 2^18 is above the 1000 s where it ends
// A longer delay, which may be any number of a user's, ends earlier: the next reconcile asks again.
constexpr std::chrono::hours kLongestDelay{24 * 30};

}  // namespace

struct WorkQueue::State : std::enable_shared_from_this<WorkQueue::State> {
  State(asio::io_context& io, Clock& clock_) : executor(io.get_executor()), clock(clock_) {}

  struct Waiter {
    explicit Waiter(const asio::any_io_executor& executor) : woken(executor) {}
    Notifier woken;
    std::optional<ObjectKey> key;
    bool is_served = false;
  };

  struct Item;
  using Entry = std::pair<const ObjectKey, Item>;
  using ByTime = std::multimap<Clock::Steady, Entry*>;

  // These are the keys of a namespace that are ready, in order, and the number that are being
  // worked on.
  struct NamespaceQueue {
    Entry* first = nullptr;
    Entry* last = nullptr;
    std::size_t working = 0;
  };

  struct Item {
    bool is_ready = false;
    bool is_working = false;
    bool is_dirty = false;  // added while being worked on
    int failures = 0;
    NamespaceQueue* queue = nullptr;  // set while it is ready or being worked on
    Entry* next = nullptr;            // the next one that is ready
    Clock::Steady since;              // the time when it became ready
    std::optional<ByTime::iterator> due;
    // This is set while it is being worked on: the delay that was pending when it was handed out.
    // The delay counts again if the work fails.
    std::optional<Clock::Steady> answered;
  };

  asio::any_io_executor executor;
  Clock& clock;
  // The keys about which something is known.
  std::unordered_map<ObjectKey, Item, ObjectKeyHash> items;
  std::unordered_map<std::string, NamespaceQueue> queues;  // with keys ready or being worked on
  std::deque<NamespaceQueue*> turn;                        // those with ready keys
  std::size_t ready = 0;
  std::size_t working = 0;
  std::size_t workers = 0;  // 0: not known, no bound
  std::size_t share = 0;
  ByTime by_time;
  std::unique_ptr<Timer> timer;
  Clock::Steady timer_at = Clock::Steady::max();
  std::deque<std::shared_ptr<Waiter>> waiters;
  // It is the owner's; nullptr once that is gone.
  const std::function<void(std::chrono::steady_clock::duration)>* on_wait = nullptr;
  bool is_closed = false;
  std::uint64_t adds = 0;
  std::uint64_t retries = 0;

  Entry& entry_of(ObjectKey key) { return *items.try_emplace(std::move(key)).first; }

  void drop_if_idle(const Entry& entry) {
    const Item& item = entry.second;
    if (!item.is_ready && !item.is_working && !item.due && item.failures == 0)
      items.erase(entry.first);
  }

  void add(Entry& entry) {
    Item& item = entry.second;
    if (item.is_ready || item.is_dirty) return;
    ++adds;
    item.is_dirty = item.is_working;
    if (item.is_working) return;
    make_ready(entry);
    serve();
  }

  // The entry's key is neither ready nor being worked on.
  void make_ready(Entry& entry) {
    Item& item = entry.second;
    NamespaceQueue& queue = queues.try_emplace(entry.first.ns).first->second;
    item.is_ready = true;
    item.since = clock.steady();
    item.queue = &queue;
    item.next = nullptr;
    if (queue.first) {
      queue.last->second.next = &entry;
    } else {
      queue.first = &entry;
      turn.push_back(&queue);
    }
    queue.last = &entry;
    ++ready;
  }

  void serve() {
    while (!waiters.empty()) {
      std::optional<ObjectKey> key;
      if (!is_closed && !(key = take())) return;
      const auto waiter = waiters.front();
      waiters.pop_front();
      waiter->is_served = true;
      waiter->key = std::move(key);
      waiter->woken.notify();
    }
  }

  bool may_work(const NamespaceQueue& queue) const {
    return workers == 0 || queue.working == 0 ||
           queue.working + share * (working + 1) < share * workers;
  }

  // Returns nullopt if nothing is ready whose namespace may have another worker.
  std::optional<ObjectKey> take() {
    for (std::size_t left = turn.size(); left > 0; --left) {
      NamespaceQueue& queue = *turn.front();
      turn.pop_front();
      if (may_work(queue)) {
        Entry& entry = *queue.first;
        queue.first = entry.second.next;
        if (queue.first) turn.push_back(&queue);
        start(entry);
        return entry.first;
      }
      turn.push_back(&queue);
    }
    return std::nullopt;
  }

  void start(Entry& entry) {
    Item& item = entry.second;
    item.is_ready = false;
    item.is_working = true;
    --ready;
    ++working;
    ++item.queue->working;
    if (item.due) {
      item.answered = (*item.due)->first;
      cancel_delay(item);
    }
    if (on_wait != nullptr && *on_wait) (*on_wait)(clock.steady() - item.since);
  }

  // The work on a key has ended. `is_again` says that the key is ready at once.
  void finish(Entry& entry, bool is_again) {
    NamespaceQueue& queue = *entry.second.queue;
    entry.second.is_working = entry.second.is_dirty = false;
    entry.second.answered.reset();
    --working;
    --queue.working;
    if (is_again && !is_closed) make_ready(entry);
    if (!queue.first && queue.working == 0) queues.erase(entry.first.ns);
    drop_if_idle(entry);
    serve();  // its namespace may have waited for this
  }

  void cancel_delay(Item& item) {
    by_time.erase(*item.due);
    item.due.reset();
  }

  void add_at(Entry& entry, Clock::Steady when) {
    Item& item = entry.second;
    if (item.due) {
      if ((*item.due)->first <= when) return;
      cancel_delay(item);
    }
    item.due = by_time.emplace(when, &entry);
    set_timer();
  }

  // There is one timer, for the earliest key. It is moved only forward: if it fires early, it finds
  // nothing due and is set again.
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
      Entry& entry = *by_time.begin()->second;
      cancel_delay(entry.second);
      add(entry);
    }
    set_timer();
  }

  // Waiting keys are never handed out, so that only those that are being worked on keep the queue
  // busy.
  void close() {
    is_closed = true;
    timer.reset();
    by_time.clear();
    turn.clear();
    ready = 0;
    std::erase_if(items, [](const Entry& entry) { return !entry.second.is_working; });
    for (auto& [key, item] : items) item.due.reset();
    std::erase_if(queues, [](const auto& queue) { return queue.second.working == 0; });
    for (auto& [ns, queue] : queues) queue.first = nullptr;
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

void WorkQueue::share_workers(std::size_t workers, std::size_t share) {
  state_->workers = workers;
  state_->share = share;
}

void WorkQueue::add(ObjectKey key) {
  if (!state_->is_closed) state_->add(state_->entry_of(std::move(key)));
}

void WorkQueue::add_after(ObjectKey key, Milliseconds delay) {
  if (state_->is_closed) return;
  auto& entry = state_->entry_of(std::move(key));
  if (delay.count() <= 0) {
    state_->add(entry);
  } else {
    state_->add_at(entry, state_->clock.steady() + std::min<Milliseconds>(delay, kLongestDelay));
  }
}

void WorkQueue::add_rate_limited(ObjectKey key, Milliseconds longest) {
  const int failures = state_->items[key].failures++;
  ++state_->retries;
  const auto delay = kFirstBackoff * (std::int64_t{1} << std::min(failures, kMaxDoublings));
  add_after(std::move(key), std::min<Milliseconds>(delay, longest));
}

void WorkQueue::forget(const ObjectKey& key) {
  const auto at = state_->items.find(key);
  if (at == state_->items.end()) return;
  at->second.failures = 0;
  at->second.answered.reset();
  state_->drop_if_idle(*at);
}

int WorkQueue::failures(const ObjectKey& key) const {
  const auto at = state_->items.find(key);
  return at == state_->items.end() ? 0 : at->second.failures;
}

Task<std::optional<ObjectKey>> WorkQueue::next() {
  const auto state = state_;
  if (state->is_closed) co_return std::nullopt;
  if (auto key = state->take()) co_return key;
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
    // The caller was cancelled, so it will not call done(): the key is ready again.
    state->finish(*state->items.find(*waiter->key), true);
    co_return std::nullopt;
  }
  co_return std::move(waiter->key);
}

void WorkQueue::done(const ObjectKey& key) {
  const auto at = state_->items.find(key);
  if (at == state_->items.end() || !at->second.is_working) return;
  if (at->second.answered && !state_->is_closed) state_->add_at(*at, *at->second.answered);
  state_->finish(*at, at->second.is_dirty);
}

void WorkQueue::close() {
  state_->close();
}

std::size_t WorkQueue::depth() const {
  return state_->ready;
}

std::size_t WorkQueue::delayed() const {
  return state_->by_time.size();
}

std::vector<ObjectKey> WorkQueue::ready_keys(std::size_t limit) const {
  std::vector<ObjectKey> keys;
  for (const State::NamespaceQueue* const queue : state_->turn) {
    for (const State::Entry* at = queue->first; at && keys.size() < limit; at = at->second.next)
      keys.push_back(at->first);
  }
  return keys;
}

std::uint64_t WorkQueue::adds() const {
  return state_->adds;
}

std::uint64_t WorkQueue::retries() const {
  return state_->retries;
}

bool WorkQueue::is_idle() const {
  return state_->ready == 0 && state_->working == 0;
}

}  // namespace kube
