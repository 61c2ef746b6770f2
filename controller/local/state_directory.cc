#include "controller/local/state_directory.hh"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

namespace trainer {

using kube::Result;

namespace {

constexpr const char* kLock = "lock";

tl::unexpected<kube::Error> failed(const std::filesystem::path& path, const char* doing) {
  return kube::fail(kube::ErrorCode::kInvalid, "{} cannot be {}: {}", path.string(), doing,
                    std::strerror(errno));
}

// The lock of a daemon that was killed ends a moment later than the process. A command that looks
// whether the lock is held has it for a moment, too.
bool take_lock(const StateDirectory& state, const node::Fd& lock) {
  constexpr int kMoment = 20;
  for (int tries = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    std::string words;
    std::getline(std::ifstream("/proc/" + state.read(kLock).value_or("") + "/cmdline"), words);
    if ((!words.empty() && tries >= kMoment) || tries == 400) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<StateDirectory>> StateDirectory::lock(std::filesystem::path path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error) && !error)
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (error) {
    return kube::fail(kube::ErrorCode::kInvalid, "{} cannot be made: {}", path.string(),
                      error.message());
  }
  node::Fd lock(::open((path / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return failed(path / kLock, "opened");
  std::unique_ptr<StateDirectory> made(new StateDirectory(std::move(path), std::move(lock)));
  if (!take_lock(*made, made->lock_)) {
    const std::string holder = made->read(kLock).value_or("");
    return kube::fail(
        kube::ErrorCode::kInvalid,
        "{}: another daemon uses it{}: `trainer local status` shows it, `trainer local down` ends "
        "it",
        made->path_.string(), holder.empty() ? "" : " (process " + holder + ")");
  }
  if (::ftruncate(made->lock_.get(), 0) != 0 ||
      !node::write_all(made->lock_, std::to_string(::getpid())))
    return failed(made->path_ / kLock, "written");
  return made;
}

std::optional<std::string> StateDirectory::read(std::string_view name) const {
  auto text = node::read_file(path_ / name);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

Result<void> StateDirectory::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path target = path_ / name;
  const std::filesystem::path fresh = target.string() + ".new";
  node::Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return failed(fresh, "made");
  const bool is_written = node::write_all(file, text);
  if (::close(file.release()) != 0 || !is_written) return failed(fresh, "written");
  if (::rename(fresh.c_str(), target.c_str()) != 0) return failed(target, "replaced");
  return {};
}

void StateDirectory::remove(std::string_view name) const {
  std::error_code ignored;
  std::filesystem::remove(path_ / name, ignored);
}

bool StateDirectory::is_in_place() const {
  struct stat held {
  }, found{};
  return ::fstat(lock_.get(), &held) == 0 && ::stat((path_ / kLock).c_str(), &found) == 0 &&
         held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

}  // namespace trainer
