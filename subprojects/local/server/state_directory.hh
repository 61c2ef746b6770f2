// Local mode keeps everything in this folder.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "kube/model/error.hh"
#include "local/node/owned.hh"

namespace trainer {

// If this file is in the folder, a daemon that was started to leave when it is idle stays
// nevertheless.
inline constexpr const char* kStaysFile = "stays";

// Locks the folder for this process: a second one is refused. The lock ends with the process,
// however that ends, and its children do not inherit it.
class StateDirectory {
 public:
  // Makes it if it is missing, for its owner alone. Errors (kInvalid) are a sentence: another
  // process has the lock, another user could change the folder, or it cannot be made or written.
  static kube::Result<std::unique_ptr<StateDirectory>> lock(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return folder_.path(); }
  const node::OwnedDirectory& folder() const { return folder_; }
  // Returns false once the folder was removed or replaced: no command finds this process any more.
  bool is_in_place() const;

 private:
  StateDirectory(node::OwnedDirectory folder, node::Fd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  node::OwnedDirectory folder_;
  node::Fd lock_;
};

}  // namespace trainer
