// Commands run in a container of a pod, by the subresource `exec` of pods over a WebSocket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/client/api_client.hh"

namespace kube {

struct PodCommand {
  ObjectKey pod;
  std::string container;
  std::vector<std::string> words;
  // Its standard input. The end of the input is not passed on, since servers before Kubernetes 1.30
  // cannot say it: a command must know how much it reads.
  std::string input;
  Milliseconds limit{90'000};  // from the end of the input to the end of the command
};

struct PodCommandEnd {
  int exit_code = 0;
  std::string output;  // standard output and error, as they came, at most kMaxCommandOutput of each
};

inline constexpr std::size_t kMaxCommandOutput = std::size_t{64} << 10;

// Pure. Returns the path and the query of the request.
std::string exec_path(const PodCommand& command);
// Pure. Returns how a command ended by the Status that ends its output. Errors: it was not started.
Result<int> exit_code_of(std::string_view status);

// Runs the command to its end. A command that ends with another exit code than 0 is no error.
// Errors: kForbidden, kNotFound and others of the API server; kTimeout; kNetwork, also for a server
// that speaks no WebSocket.
Task<Result<PodCommandEnd>> run_in_pod(ApiClient& client, PodCommand command);

}  // namespace kube
