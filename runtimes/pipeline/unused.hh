// Settings of runtimes and patches that nothing takes.
#pragma once

#include <string>
#include <vector>

#include "api/runtime.hh"
#include "api/trainjob.hh"

namespace trainer::pipeline {

// A sentence each, which begins with the path: numbers of pods that another setting decides, a
// suspension that is the TrainJob's, a launcher that is not there, and metadata other than labels
// and annotations.
void warn_about_unused(const Runtime& runtime, std::vector<std::string>& warnings);
// The same metadata in the patches of a job.
void warn_about_unused(const TrainJob& job, std::vector<std::string>& warnings);

}  // namespace trainer::pipeline
