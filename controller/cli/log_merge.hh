// `trainer logs` without --follow prints all existing logs, merged by time.
#pragma once

#include <functional>
#include <vector>

#include "controller/cli/log_pod.hh"
#include "controller/cli/log_stream.hh"

namespace trainer {

// Prints one line.
using PrintLine =
    std::function<void(const LogPod& pod, std::string_view container, const LogLine& line)>;

// Prints the logs of all containers of the pods that `query` selects, merged by their timestamps.
// More than 64 containers are merged in groups of 64, one group after the other, to bound the
// connections. A log that cannot be read is reported to `on_error` and left out.
kube::Task<kube::Result<void>> merge_logs(kube::ApiClient& client, std::vector<LogPod> pods,
                                          LogQuery query, PrintLine print,
                                          std::function<void(std::string_view)> on_error);

}  // namespace trainer
