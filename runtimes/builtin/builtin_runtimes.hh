// These ClusterTrainingRuntimes come with the program.
#pragma once

#include <vector>

#include "kube/model/json.hh"

namespace trainer {

// Returns them in the order in which they are listed to people: the general ones first. Each is a
// whole object from its YAML file. Errors: none; the files are part of the program, and a test
// reads each of them.
std::vector<kube::Json> builtin_runtimes();

}  // namespace trainer
