#include "runtimes/lifecycle/failure.hh"

#include <fmt/format.h>

namespace trainer {

FirstFailure record_failure(const PodView& pod) {
  FirstFailure failure;
  failure.pod = pod.name;
  failure.job = pod.replicated_job;
  failure.index = pod.index;
  failure.node = pod.node_name;
  failure.container = pod.failure->container;
  failure.exitCode = pod.failure->exit_code;
  failure.signal = pod.failure->signal;
  failure.reason = pod.failure->reason;
  failure.message = pod.failure->message;
  failure.attempt = pod.attempt;
  if (pod.failure->finished_at) failure.time = pod.failure->finished_at->whole_seconds();
  return failure;
}

std::string describe(const FirstFailure& failure) {
  std::string text = fmt::format("pod {}", failure.pod);
  if (failure.index)
    text += fmt::format(" ({} {})", failure.job.empty() ? "index" : failure.job, *failure.index);
  if (!failure.node.empty()) text += fmt::format(" on {}", failure.node);
  text += ": ";
  text += failure.container.empty() ? std::string("it")
                                    : fmt::format("container {}", failure.container);
  if (failure.exitCode) {
    text += fmt::format(" ended with exit code {}", *failure.exitCode);
  } else {
    text += " failed";
  }
  if (failure.signal) text += fmt::format(", signal {}", *failure.signal);
  if (!failure.reason.empty() && failure.reason != "Error")
    text += fmt::format(" ({})", failure.reason);
  return text;
}

}  // namespace trainer
