// Warnings about the label by which a job of a runtime is the one that trains.
#pragma once

#include <string>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Of a runtime's framework whose nodes would not find each other: because no job has the label, or
// because a second one has it. Upstream accepts both.
struct LabelWarning {
  std::size_t job = 0;  // which of the jobs
  std::string text;     // "job \"node\" has no label ...", with the way out
};

// `policy` may be nullptr.
std::vector<LabelWarning> warn_about_trainer_label(const std::vector<ReplicatedJob>& jobs,
                                                   const MlPolicy* policy, const Plugins& plugins);

// The sentence as warn_runtime() has it.
std::string text_for_runtime(const LabelWarning& warning);

}  // namespace trainer::pipeline
