// Brings the code of an edit into the pods of a job that run, and begins its command there again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "kube/client/api_client.hh"

namespace trainer {

struct PushTarget {
  kube::ObjectKey pod;
  std::string container;
  std::string directory;  // the working directory
};

// These pods of a job get the code of an edit.
struct PushTargets {
  std::vector<PushTarget> running;
  bool is_starting = false;  // another one will run soon, and may have unpacked the code before
  std::string obstacle;      // the reason why no edit comes into the pods; "" for none
};
// Pure. A pod that is deleted, or that no node has, does not count.
PushTargets push_targets(const std::vector<kube::Json>& pods);

// Ends the command in all pods, and begins it again when all of them have the code. `packed` is the
// compressed tar, `script` is apply_script(). Errors: the first one, with the name of its pod.
// Concurrency: the thread of `io`.
kube::Task<kube::Result<void>> push_code(kube::asio::io_context& io, kube::ApiClient& client,
                                         std::vector<PushTarget> targets, std::string packed,
                                         std::string script);

}  // namespace trainer
