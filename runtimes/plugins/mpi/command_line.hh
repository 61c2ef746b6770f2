// This finds mpirun in a launcher's command line, and its options about variables of the ranks.
// Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trainer::pipeline::mpi {

struct CommandLine {
  enum class Start {
    kMpirun,   // mpirun, which is visible, and which has no option for variables
    kExports,  // mpirun with options about variables, such as `-x NAME`
    kUnknown,  // a script or program in the image
  };
  Start start = Start::kUnknown;
  std::set<std::string, std::less<>> exported;  // the names after -x
};

// Reads command and args of a container in this order: mpirun at their beginning, behind a program
// such as env or timeout, or in the text of `bash -c`. Only the options before the program count.
CommandLine read_command_line(const std::vector<std::string_view>& words);

}  // namespace trainer::pipeline::mpi
