// Finds the entries that plugins have written in the place of those of a job, its patches or its
// runtime.
#pragma once

#include <string>
#include <vector>

#include "runtimes/pipeline/draft.hh"

namespace trainer::pipeline {

// Adds one sentence for each entry of Draft::replaced that was said by someone and is another one
// in the built draft. What the job says in the place of its runtime's is meant, and not among them.
// Where there are very many, the first are reported.
void warn_about_overwrites(const Draft& draft, Built& built);

// The same for a runtime, with its own paths: these are entries that no job of it can have.
std::vector<std::string> warn_about_overwrites_of_runtime(const Draft& draft);

}  // namespace trainer::pipeline
