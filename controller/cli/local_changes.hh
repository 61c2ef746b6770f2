// `trainer local run` changes a TrainJob in this way before it is applied, so that a job sized for
// a cluster runs on one machine. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace trainer {

// This is a directory of this machine, visible in pods at `target`.
struct LocalMount {
  std::string source;
  std::string target;
};
// Reads "DIR:/PATH"; a relative DIR begins at `working_directory`. Errors quote the text.
kube::Result<LocalMount> parse_mount(std::string_view text, std::string_view working_directory);

struct LocalChanges {
  std::optional<std::int32_t> nodes;  // spec.trainer.numNodes
  std::optional<std::int32_t> procs;  // spec.trainer.numProcPerNode
  std::vector<LocalMount> mounts;     // the mounts of containers named `node`
  std::string path;                   // $PATH of the trainer; "" if it is not set
  bool is_fitted = false;             // requests are cut to what the machine has
};

// Changes the job, in the order of the members above, and returns a line for each value that was
// cut or set. `runtime` is the object that the job refers to. `machine` is `status.allocatable` of
// the node.
std::vector<std::string> change_for_local(kube::Json& job, const kube::Json& runtime,
                                          const kube::Json& machine, const LocalChanges& changes);

}  // namespace trainer
