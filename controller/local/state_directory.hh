// The folder in which local mode keeps everything.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/node/files.hh"
#include "kube/model/error.hh"

namespace trainer {

// In the folder: a daemon that was started to leave when it is idle stays nevertheless.
inline constexpr const char* kStaysFile = "stays";

// Locks the folder for this process: a second one is refused. The lock ends with the process,
// however that ends, and its children do not inherit it.
class StateDirectory {
 public:
  // Makes it where it is missing, for its owner alone. Errors (kInvalid) are a sentence: another
  // process has the lock, or the folder cannot be made or written.
  static kube::Result<std::unique_ptr<StateDirectory>> lock(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  // The file's text; nullopt where there is none.
  std::optional<std::string> read(std::string_view name) const;
  // Replaces the file in one step. Only its owner can read it. Errors (kInvalid) name it.
  kube::Result<void> write(std::string_view name, std::string_view text) const;
  void remove(std::string_view name) const;
  // False once the folder was removed or replaced: no command finds this process any more.
  bool is_in_place() const;

 private:
  StateDirectory(std::filesystem::path path, node::Fd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  node::Fd lock_;
};

}  // namespace trainer
