#include "local/server/state_directory.hh"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

namespace trainer {

using kube::Result;

namespace {

constexpr const char* kLock = "lock";

// The lock of a daemon that was killed ends a moment later than the process. A command that checks
// whether the lock is held has it for a moment, too.
bool take_lock(const node::OwnedDirectory& folder, const node::Fd& lock) {
  constexpr int kMoment = 20;
  for (int tries = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    std::string words;
    std::getline(std::ifstream("/proc/" + folder.read(kLock).value_or("") + "/cmdline"), words);
    if ((!words.empty() && tries >= kMoment) || tries == 400) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<StateDirectory>> StateDirectory::lock(const std::filesystem::path& path) {
  auto folder = node::OwnedDirectory::make(path);
  if (!folder) return tl::unexpected(folder.error());
  auto lock = folder->open_file(kLock, O_RDWR | O_CREAT);
  if (!lock) return tl::unexpected(lock.error());
  if (!take_lock(*folder, *lock)) {
    const std::string holder = folder->read(kLock).value_or("");
    return kube::fail(
        kube::ErrorCode::kInvalid,
        "{}: another daemon uses it{}: `trainer local status` shows it, `trainer local down` ends "
        "it",
        folder->path().string(), holder.empty() ? "" : " (process " + holder + ")");
  }
  // The file is written in place, for which a full disk has room.
  const std::string process = std::to_string(::getpid());
  if (!node::write_all(*lock, process) ||
      ::ftruncate(lock->get(), static_cast<off_t>(process.size())) != 0)
    return node::write_failure(folder->path() / kLock);
  return std::unique_ptr<StateDirectory>(new StateDirectory(std::move(*folder), std::move(*lock)));
}

bool StateDirectory::is_in_place() const {
  struct stat held {
  }, found{};
  return ::fstat(lock_.get(), &held) == 0 && ::stat((path() / kLock).c_str(), &found) == 0 &&
         held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

}  // namespace trainer
