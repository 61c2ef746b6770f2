// A job of a runtime trains if it has a label. These warnings are about that label.
#pragma once

#include <string>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// The nodes of a runtime's framework would not find each other: because no job has the label, or
// because a second one has it. Upstream accepts both.
struct LabelWarning {
  std::size_t job = 0;  // the index of the job
  std::string text;     // "job \"node\" has no label ...", and how to fix it
};

// `policy` may be nullptr.
std::vector<LabelWarning> warn_about_trainer_label(const std::vector<ReplicatedJob>& jobs,
                                                   const MlPolicy* policy, const Plugins& plugins);

// Returns the sentence of warn_runtime().
std::string text_for_runtime(const LabelWarning& warning);

}  // namespace trainer::pipeline
