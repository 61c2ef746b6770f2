// `trainer run` creates its objects, and deletes them, in this way.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/api_client.hh"

namespace trainer {

// These objects are created.
struct RunObjects {
  kube::Json job;
  std::vector<kube::Json> config_maps;
};

struct SubmittedRun {
  kube::ObjectKey job;
  std::string uid;
  bool is_queued = false;  // a queue of Kueue has it
};

// Creates the job, which owns the ConfigMaps. If one of them cannot be created, the job is deleted.
// Errors say what to do.
kube::Task<kube::Result<SubmittedRun>> submit_run(kube::ApiClient& client, RunObjects objects,
                                                  std::function<void(std::string_view)> say);

// Deletes the job, if it is still this one, with its pods and its ConfigMaps, and waits until they
// are gone. Errors (kTimeout): they are not, after some minutes.
kube::Task<kube::Result<void>> delete_run(kube::ApiClient& client, SubmittedRun run,
                                          std::vector<std::string> config_maps);

}  // namespace trainer
