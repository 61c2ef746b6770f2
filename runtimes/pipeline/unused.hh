// Nothing uses these settings of runtimes and patches.
#pragma once

#include <string>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"

namespace trainer::pipeline {

// Adds a sentence each, which begins with the path: numbers of pods that another setting decides, a
// suspension that is the TrainJob's, a launcher that does not exist, and metadata other than labels
// and annotations.
void warn_about_unused(const Runtime& runtime, std::vector<std::string>& warnings);
// Warns about the same metadata in the patches of a job.
void warn_about_unused(const TrainJob& job, std::vector<std::string>& warnings);

}  // namespace trainer::pipeline
