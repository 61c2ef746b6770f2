// This file has all rules about when work happens:
//
//   event -> debounce -> reconcile -> status rate limit -> write semaphore -> wake coalescing
//
// A watch event enqueues its object after a debounce, so that one reconcile sees what changes
// together. A status that differs only in counters waits, and its writes are rate limited. The
// number of writes in flight is bounded. A busy event loop sleeps briefly between two wakes.
//
// If several namespaces wait, they are served in turn: for workers, one key each, and for writes,
// one each. So one namespace with a hundred thousand Jobs to create delays the others by a few
// writes. Within a namespace, keys are served in the order in which they became ready, and children
// are written before statuses.
#pragma once

#include <chrono>
#include <cstddef>

namespace kube {

// The debounce is how long the reconcile that follows from an event can wait. Events that come in
// bursts wait for related ones, longest if little more than counters follows (a Pod, a Job that
// goes on); a created, changed or deleted object, and a Job's end, cannot wait.
enum class Debounce { kNone, kShort, kCounters };

// An object of one controller waits this long. The waits are too short for a user to notice.
struct DebounceTimes {
  std::chrono::milliseconds brief;     // Debounce::kShort
  std::chrono::milliseconds counters;  // Debounce::kCounters
  // A difference in counters alone waits this long in all, its debounce included, so that related
  // counters (a Job's, its Pods') are one write.
  std::chrono::milliseconds status;
  // This replaces `counters` and `status` while writes queue, since a queued status becomes
  // outdated.
  std::chrono::milliseconds under_load;
};

struct Pacing {
  // Events of one collection within this time are processed together: wakes are expensive.
  static constexpr std::chrono::milliseconds kEventBatch{20};
  // The API server stays busy for a while after the last queued write was sent.
  static constexpr std::chrono::milliseconds kLoadCooldown{1'000};
  // Counters that keep changing are written once in this interval.
  static constexpr std::chrono::milliseconds kStatusInterval{1'000};
  // This many writes are made before the interval applies: a small job changes its counters only a
  // few times in all, and Kueue waits for them.
  static constexpr int kStatusBurst = 3;
  // More writes in flight do not help: with forty, writes no longer queue, so statuses are written
  // more often and a job takes more requests. The transport must allow more requests than this, or
  // reads wait for writes.
  static constexpr std::size_t kWritesInFlight = 24;
  // While creates of children wait, one of so many writes of a namespace is that of a status. The
  // share is small, since a status that is written early is written again, but large enough for
  // counters that users wait for.
  static constexpr std::size_t kStatusShare = 32;
  // A namespace that uses workers of a controller gets another one only while it uses fewer than so
  // many times the number that would be left free. A reconcile may take seconds, so some workers
  // must be free for other namespaces at any time: one namespace gets 28 of 32, two get 29.
  static constexpr std::size_t kWorkerShare = 7;
  // If a plan writes nothing and asks for the next reconcile sooner than this, that reconcile waits
  // this long, then twice as long each time, up to kLongestPause: its plan would be the same again.
  static constexpr std::chrono::milliseconds kShortestPause{20};
  static constexpr std::chrono::milliseconds kLongestPause{10'000};
  // A loop that uses more than this share of a processor sleeps after each wake. A job a second
  // needs half a percent.
  static constexpr double kBusyShare = 0.02;
  static constexpr std::chrono::milliseconds kWakePause{25};
  // A wake that took this long has processed many events: it is not followed by a pause.
  static constexpr std::chrono::milliseconds kLongWake{10};
  // The share is measured over this time.
  static constexpr std::chrono::milliseconds kBusyWindow{250};
};

}  // namespace kube
