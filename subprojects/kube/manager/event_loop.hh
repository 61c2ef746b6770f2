// The thread of the control loops.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace kube {

// No step (handler) may take longer: probes, watches and the Lease wait meanwhile.
inline constexpr std::chrono::milliseconds kSlowStep{10};

// Runs until `io` is stopped, coalescing wakes while there is much to do.
// `on_slow_step` gets the processor time of each step that took more than kSlowStep; it may include
// up to a millisecond of earlier steps.
void run_event_loop(boost::asio::io_context& io,
                    const std::function<void(std::chrono::nanoseconds took)>& on_slow_step);

}  // namespace kube
