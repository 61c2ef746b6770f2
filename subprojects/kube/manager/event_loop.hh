// A thread runs handlers in such a loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace kube {

// No step (handler) may take longer, since probes, watches and the Lease wait meanwhile.
inline constexpr std::chrono::milliseconds kSlowStep{10};

// It is called with the processor time of each step that took more than kSlowStep; the time may
// include up to a millisecond of earlier steps.
using OnSlowStep = std::function<void(std::chrono::nanoseconds took)>;

// Both functions run until `io` is stopped, or a handler throws. This one is for requests, whose
// answers are awaited.
void run_event_loop(boost::asio::io_context& io, const OnSlowStep& on_slow_step);
// Control loops run this way: it coalesces wakes while there is much to do.
void run_coalescing_event_loop(boost::asio::io_context& io, const OnSlowStep& on_slow_step);

}  // namespace kube
