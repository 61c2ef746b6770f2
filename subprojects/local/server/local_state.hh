// Local mode keeps this in its state directory between two runs of the daemon.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "kube/model/error.hh"
#include "kube/model/time.hh"
#include "local/server/access.hh"
#include "local/server/audit.hh"
#include "local/server/journal.hh"
#include "local/server/state_directory.hh"

namespace trainer {

struct LocalState {
  std::unique_ptr<StateDirectory> directory;
  Access access;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Audit> audit;  // nullptr: none is written
};

// Opens all of it, or makes it. `audit` is a file, or "". Errors (kInvalid) are a sentence for a
// person.
kube::Result<LocalState> open_local_state(const std::filesystem::path& path,
                                          const std::string& audit, kube::Time now);

}  // namespace trainer
