#include "kube/client/events.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/client/notifier.hh"
#include "kube/model/resources.hh"
#include "kube/model/visible_text.hh"

namespace kube {

namespace {

constexpr std::size_t kMaxMessage = 1'024;
constexpr std::size_t kMaxPending = 1'000;
constexpr std::size_t kMaxRemembered = 2'000;
constexpr std::size_t kMaxNamePrefix = 230;  // leaves room for "." and 16 digits in 253
constexpr std::chrono::minutes kCountedFor{10};
constexpr int kMaxTries = 3;
constexpr Milliseconds kFirstPause{500};
constexpr int kMaxDoublings = 6;

// Never cuts a character in two.
std::string cut(std::string message) {
  if (message.size() <= kMaxMessage) return message;
  std::size_t end = kMaxMessage;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0U) == 0x80U) --end;
  message.resize(end);
  return message;
}

// Events with the same identity are one event with a count. The identity is one text, since it is
// looked up by hash: in a burst hundreds wait.
std::string identity_of(const Event& event) {
  const ObjectReference& on = event.regarding;
  std::string identity;
  identity.reserve(256 + event.message.size());
  for (const std::string* part : {&on.api_version, &on.kind, &on.key.ns, &on.key.name, &on.uid,
                                  &event.type, &event.reason, &event.message}) {
    identity += *part;
    identity += '\0';
  }
  return identity;
}

struct Waiting {
  Event event;
  std::string identity;
  Time first;
  Time last;
  std::int64_t count = 1;
  int tries = 0;
  // This is the object's name from the first create on: a create whose answer was lost may have
  // made it.
  std::string name;
};

struct Sent {
  ObjectKey key;
  std::int64_t count = 0;
  Clock::Steady at;
};

Json object_of(const Waiting& waiting, const ObjectKey& key, const std::string& component) {
  const ObjectReference& on = waiting.event.regarding;
  Json regarding = Json::object({{"apiVersion", on.api_version}, {"kind", on.kind}});
  regarding.set("name", on.key.name);
  if (!on.key.ns.empty()) regarding.set("namespace", on.key.ns);
  if (!on.uid.empty()) regarding.set("uid", on.uid);
  Json object = Json::object({{"apiVersion", "v1"}, {"kind", "Event"}});
  object.set("metadata", Json::object({{"name", key.name}, {"namespace", key.ns}}));
  object.set("involvedObject", std::move(regarding));
  object.set("type", waiting.event.type);
  object.set("reason", waiting.event.reason);
  object.set("message", waiting.event.message);
  object.set("firstTimestamp", waiting.first.to_string());
  object.set("lastTimestamp", waiting.last.to_string());
  object.set("count", waiting.count);
  object.set("source", Json::object({{"component", component}}));
  object.set("reportingComponent", component);
  object.set("reportingInstance", "");
  return object;
}

}  // namespace

struct EventRecorder::State {
  State(ApiClient& client_, std::string component_)
      : client(client_), component(std::move(component_)) {}

  ApiClient& client;
  std::string component;
  using Queue = std::list<Waiting>;
  Queue waiting;
  std::unordered_map<std::string_view, Queue::iterator> by_identity;  // views of `waiting`
  std::unordered_map<std::string, Sent> sent;
  std::size_t dropped = 0;
  bool is_sending = false;
  std::optional<Notifier> changed;  // notified when an event has been recorded, sent or dropped

  bool is_idle() const { return waiting.empty() && !is_sending; }

  void wake() {
    if (changed) changed->notify();
  }

  // The first waiter makes it, since it knows the executor.
  Notifier& listen(const asio::any_io_executor& executor) {
    return changed ? *changed : changed.emplace(executor);
  }

  void record(Event event) {
    event.message = cut(visible_text(std::move(event.message)));
    const Time now = client.clock().now();
    std::string identity = identity_of(event);
    const auto same = by_identity.find(identity);
    if (same != by_identity.end()) {
      Waiting& known = *same->second;
      ++known.count;
      known.last = now;
      known.event.is_terminal = known.event.is_terminal || event.is_terminal;
      return;
    }
    add(Waiting{std::move(event), std::move(identity), now, now});
    if (waiting.size() > kMaxPending) drop_oldest();
    wake();
  }

  void add(Waiting one) {
    waiting.push_back(std::move(one));
    // An equal event may have been recorded meanwhile. That one goes on counting.
    by_identity.try_emplace(waiting.back().identity, std::prev(waiting.end()));
  }

  Waiting take(Queue::iterator at) {
    const auto known = by_identity.find(at->identity);
    if (known != by_identity.end() && known->second == at) by_identity.erase(known);
    Waiting one = std::move(*at);
    waiting.erase(at);
    return one;
  }

  void drop_oldest() {
    const auto at = std::find_if(waiting.begin(), waiting.end(),
                                 [](const Waiting& each) { return !each.event.is_terminal; });
    if (at == waiting.end()) return;
    take(at);
    ++dropped;
  }

  Task<Result<void>> send(Waiting& one) {
    const auto known = sent.find(one.identity);
    if (known != sent.end() && client.clock().steady() - known->second.at < kCountedFor) {
      const auto counted = co_await count_up(one, known->second);
      if (counted || counted.error().code != ErrorCode::kNotFound) co_return counted;
    }
    co_return co_await create(one);
  }

  Task<Result<void>> count_up(const Waiting& one, Sent& known) {
    Json patch = Json::object({{"count", known.count + one.count}});
    patch.set("lastTimestamp", one.last.to_string());
    const auto written = co_await client.merge_patch(kEvents, known.key, std::move(patch));
    if (!written) co_return tl::unexpected(written.error());
    known.count += one.count;
    known.at = client.clock().steady();
    co_return Result<void>();
  }

  Task<Result<void>> create(Waiting& one) {
    Sent made;
    const ObjectKey& on = one.event.regarding.key;
    if (one.name.empty()) {
      one.name =
          on.name.substr(0, kMaxNamePrefix) + "." + fmt::format("{:016x}", client.random().next());
    }
    made.key.ns = on.ns.empty() ? "default" : on.ns;
    made.key.name = one.name;
    const std::string& source = one.event.component.empty() ? component : one.event.component;
    const auto written =
        co_await client.create(kEvents, object_of(one, made.key, source), component);
    const bool is_made_before = !written && written.error().code == ErrorCode::kAlreadyExists;
    if (!written && !is_made_before) co_return tl::unexpected(written.error());
    made.count = is_made_before ? 0 : one.count;
    made.at = client.clock().steady();
    remember(one.identity, std::move(made));
    // An earlier try was stored, though its answer was lost, with the count at that time. The count
    // may be higher now.
    if (is_made_before) co_return co_await count_up(one, sent.at(one.identity));
    co_return Result<void>();
  }

  void remember(std::string identity, Sent made) {
    if (sent.size() >= kMaxRemembered) forget_older_half();
    sent[std::move(identity)] = std::move(made);
  }

  // Half of them are forgotten, so that not each event beyond the limit has to check all of them.
  void forget_older_half() {
    std::vector<Clock::Steady> times;
    for (const auto& [identity, made] : sent) times.push_back(made.at);
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    std::erase_if(sent, [until = *middle](const auto& each) { return each.second.at <= until; });
  }

  // Returns true if the event is to be tried again.
  bool keep_failed(Waiting one, const Error& error) {
    ++one.tries;
    // A new try cannot change some refusals: the namespace is gone or going, or the event is not
    // accepted. An API server that starts may answer 401, and a write without the Lease is
    // cancelled.
    const bool is_for_good = !error.is_transient() && error.code != ErrorCode::kUnauthorized &&
                             error.code != ErrorCode::kCancelled;
    if (is_for_good || (!one.event.is_terminal && one.tries >= kMaxTries)) {
      ++dropped;
      return false;
    }
    add(std::move(one));
    return true;
  }
};

EventRecorder::EventRecorder(ApiClient& client, std::string component)
    : state_(std::make_shared<State>(client, std::move(component))) {}

void EventRecorder::record(Event event) {
  state_->record(std::move(event));
}

Task<void> EventRecorder::run() {
  const auto state = state_;
  Notifier& changed = state->listen(co_await asio::this_coro::executor);
  int failures = 0;
  for (;;) {
    while (state->waiting.empty()) co_await changed.wait();
    Waiting one = state->take(state->waiting.begin());
    state->is_sending = true;
    const auto done = co_await state->send(one);
    state->is_sending = false;
    const bool is_kept = !done && state->keep_failed(std::move(one), done.error());
    state->wake();
    if (!is_kept) {
      failures = 0;
      continue;
    }
    const Milliseconds pause = kFirstPause * (1 << std::min(failures++, kMaxDoublings));
    co_await sleep(state->client.clock(), pause);
  }
}

Task<void> EventRecorder::drain(Milliseconds deadline) {
  const auto state = state_;
  Clock& clock = state->client.clock();
  const auto until = clock.steady() + deadline;
  Notifier& changed = state->listen(co_await asio::this_coro::executor);
  while (!state->is_idle() && clock.steady() < until) co_await changed.wait_until(clock, until);
}

std::size_t EventRecorder::pending() const {
  return state_->waiting.size() + (state_->is_sending ? 1 : 0);
}

std::size_t EventRecorder::dropped() const {
  return state_->dropped;
}

}  // namespace kube
