// Finds the entries with which plugins have replaced those of a job, its patches or its runtime.
#pragma once

#include <string>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Adds one sentence for each entry of Draft::replaced that a user has set and that differs in the
// built draft. A job's entry that replaces the runtime's is intended, and is not reported. If there
// are very many, only the first are reported.
void warn_about_overwrites(const Draft& draft, Built& built);

// Does the same for a runtime, with its own paths: no job of it can have these entries.
std::vector<std::string> warn_about_overwrites_of_runtime(const Draft& draft);

}  // namespace trainer::pipeline
