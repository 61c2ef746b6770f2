// Threads that run handlers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace kube {

// No step (handler) may take longer: probes, watches and the Lease wait meanwhile.
inline constexpr std::chrono::milliseconds kSlowStep{10};

// Called with the processor time of each step that took more than kSlowStep; the time may include
// up to a millisecond of earlier steps.
using OnSlowStep = std::function<void(std::chrono::nanoseconds took)>;

// Both run until `io` is stopped, or a handler throws.
// For requests, whose answers are awaited.
void run_event_loop(boost::asio::io_context& io, const OnSlowStep& on_slow_step);
// Control loops run this way: it coalesces wakes while there is much to do.
void run_coalescing_event_loop(boost::asio::io_context& io, const OnSlowStep& on_slow_step);

}  // namespace kube
