// Reads the folder of `--code`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/cli/code_pack.hh"

namespace trainer {

struct CodeFolder {
  std::string root;  // an absolute path, without links
  std::vector<CodeEntry> entries;
  std::size_t files = 0;
  std::uint64_t bytes = 0;            // the sum of all files, not compressed
  std::vector<std::string> left_out;  // "PATH (why)", but for what is ignored
};

// Reads all files that neither `.gitignore` nor `.trainerignore` leaves out, those of folders above
// in the same git repository included. `.git`, secrets, and what is no file of the folder never are
// in it. Errors: no such folder; a file that cannot be read (kNotFound); too much for a job
// (kTooLarge), found before the files are read.
kube::Result<CodeFolder> read_code(const std::string& folder);

}  // namespace trainer
