#include "kube/client/watch_state.hh"

#include <algorithm>
#include <utility>

namespace kube::watch {

namespace {

template <class... F>
struct match : F... {
  using F::operator()...;
};
template <class... F>
match(F...) -> match<F...>;

constexpr int kMaxDoublings = 6;  // 0.5 s * 2^6 is above the 30 s where it ends
constexpr Milliseconds kFirstPause{500};
// client-go waits for 30 s. Here a job is served 20 s after the API server is back, however long it
// was away; a pause is at most 1.25 times this.
constexpr Milliseconds kLongestPause{12'000};
constexpr Milliseconds kLongestUnserved{30'000};
// The longest pause that a server can ask for. After it the request is sent again even if the
// server asked for more, or its recovery would not be noticed.
constexpr Milliseconds kLongestAsked{300'000};

Milliseconds pause_after(int failures, Milliseconds longest = kLongestPause) {
  if (failures == 0) return Milliseconds(0);
  return std::min(longest, kFirstPause * (1 << std::min(failures - 1, kMaxDoublings)));
}

template <class S>
concept HasVersion = requires(S state) { state.version; };

Milliseconds asked_by(const Failed& failed) {
  return std::min(kLongestAsked, failed.retry_after.value_or(Milliseconds(0)));
}

}  // namespace

State step(State state, const Input& input) {
  return std::visit(
      match{
          [](Listing&& s, const Listed& in) -> State {
            return Resuming{in.version, s.failures, true, true};
          },
          [](Listing&& s, const Failed& in) -> State {
            return Listing{s.failures + 1, asked_by(in)};
          },
          [](Listing&& s, const Gone&) -> State { return Listing{s.failures + 1}; },
          [](auto&&, const NotServed&) -> State { return Unserved{}; },

          [](Resuming&& s, const Opened&) -> State {
            return Streaming{std::move(s.version), s.failures, s.is_fresh};
          },
          [](HasVersion auto&& s, const Failed& in) -> State {
            const int failures = in.is_brief ? s.failures + 1 : 1;
            return Resuming{std::move(s.version), failures, s.is_fresh, false, asked_by(in)};
          },
          // If a version is too old although it was listed just now, the next one will be too old
          // as well: that is a failure, not news.
          [](HasVersion auto&& s, const Gone&) -> State {
            return Listing{s.is_fresh ? s.failures + 1 : 0};
          },

          [](Streaming&& s, const Seen& in) -> State {
            return Streaming{in.version.empty() ? std::move(s.version) : in.version, 0, false};
          },
          [](Streaming&& s, const Closed& in) -> State {
            return Resuming{std::move(s.version), in.is_brief ? s.failures + 1 : 0, s.is_fresh};
          },
          // These inputs have ended the stream, too: nothing is open to be read.
          [](Streaming&& s, const Listed&) -> State { return Listing{s.failures + 1}; },
          [](Streaming&& s, const Opened&) -> State { return Listing{s.failures + 1}; },

          [](Unserved&&, const Listed& in) -> State {
            return Resuming{in.version, 0, true, true};
          },
          [](Unserved&&, const Failed& in) -> State {
            return Listing{1, asked_by(in)};
          },
          [](Unserved&&, const Gone&) -> State { return Listing{1}; },
          [](Unserved&& s, const NotServed&) -> State { return Unserved{s.tries + 1}; },

          // Anything else does not change what is known.
          [](auto&& other, const auto&) -> State { return std::move(other); },
      },
      std::move(state), input);
}

Milliseconds pause_before(const State& state) {
  const Milliseconds own =
      std::visit(match{
                     [](const Listing& s) { return pause_after(s.failures); },
                     [](const Resuming& s) { return pause_after(s.is_prompt ? 0 : s.failures); },
                     [](const Streaming&) { return Milliseconds(0); },
                     [](const Unserved& s) { return pause_after(s.tries, kLongestUnserved); },
                 },
                 state);
  return std::max(own, least_pause(state));
}

Milliseconds least_pause(const State& state) {
  if (const auto* const listing = std::get_if<Listing>(&state)) return listing->asked;
  const auto* const resuming = std::get_if<Resuming>(&state);
  return resuming != nullptr ? resuming->asked : Milliseconds(0);
}

}  // namespace kube::watch
