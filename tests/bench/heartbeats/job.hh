// The job whose ranks are simulated: its names, its objects in the API, and its messages.
#pragma once

#include <cstdint>
#include <string>

#include "kube/client/http_server.hh"

namespace trainer::bench {

inline constexpr const char* kJobUid = "job-uid";
inline constexpr int kRanksOfPod = 8;
inline constexpr int kStuckRank = 77;

// A process that sends heartbeats.
struct Reporter {
  int rank = 0;  // -1: the pod's agent
  int pod = 0;
  std::int64_t sent = 0;
  std::string answered;  // the last id of stacks
};

// This is what the ranks of the job do now.
struct Training {
  int world = 0;
  std::int64_t steps = 0;
  double idle = 0;        // seconds without a step
  bool is_stuck = false;  // all wait for kStuckRank
};

std::string heartbeat_path();
std::string token_of(int pod);
// The text of a heartbeat, with stacks if `dump` is an id.
std::string message_of(const Reporter& reporter, const Training& training, const std::string& dump);
// The API server's answer to a request of the TokenVerifier.
kube::ServerResponse answer_as_api(const kube::ServerRequest& request, int threshold);

}  // namespace trainer::bench
