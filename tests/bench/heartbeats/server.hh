// The process whose cost is measured: the status server as the controller has it.
#pragma once

#include <string>

namespace trainer::bench {

// Serves heartbeats over TLS until the process ends; `api` is the address of the API server.
// It writes to its output "listening PORT", and "stalled RANK NANOSECONDS" for each verdict, with
// the time of the steady clock.
void serve_heartbeats(const std::string& api);

}  // namespace trainer::bench
