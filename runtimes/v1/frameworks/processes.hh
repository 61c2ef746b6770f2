// The processes of a pod of a PyTorchJob. Internal to runtimes/v1/frameworks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/v1job.hh"
#include "kube/model/field_error.hh"

namespace trainer::v1 {

// spec.nprocPerNode as torchrun reads it: a number, also with white space around it and a sign, or
// a word.
struct ProcessesOfPod {
  std::string text;  // the value of PET_NPROC_PER_NODE: as it is written, if torchrun takes that
  // The number has no bound; if it does not fit into 64 bits, it is the nearest one that does.
  // nullopt says that the text is no number.
  std::optional<std::int64_t> number;
};
ProcessesOfPod processes_of_pod(const std::string& nproc_per_node);

// Returns how many processes a pod has, if that is known: a word counts as one, since upstream
// counts it so.
std::int64_t known_processes(const JobSpec& spec);

// Refuses a new job with numbers that torchrun or Linux do not take.
void check_processes(const V1Job& job, kube::FieldErrors& errors);
// Warns that a text is neither a plain number nor a word of torchrun, and says what counts in its
// place.
void warn_about_processes(const std::string& nproc_per_node, std::vector<std::string>& warnings);

}  // namespace trainer::v1
