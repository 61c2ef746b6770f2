#include "local/server/reserve.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>

namespace trainer {
namespace {

constexpr std::size_t kBytes = 2 << 20;
constexpr std::size_t kLeast = 64 << 10;
constexpr std::size_t kNeededAtStart = 128 << 10;  // the log of a daemon and some small files
constexpr std::size_t kStarts = 4 * kNeededAtStart;

std::size_t size_of(const node::Fd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

}  // namespace

bool Reserve::fill() const {
  const auto file = folder_.open_file(kReserveFile, O_RDWR | O_CREAT);
  if (!file) return false;
  const std::size_t before = size_of(*file);
  for (std::size_t size = kBytes; size >= kLeast && size > before; size /= 2) {
    if (posix_fallocate(file->get(), 0, static_cast<off_t>(size)) == 0) return size == kBytes;
    if (ftruncate(file->get(), static_cast<off_t>(before)) != 0) return false;
  }
  return before >= kBytes;
}

void Reserve::shrink_to(std::size_t bytes) const {
  const auto file = folder_.open_file(kReserveFile, O_RDWR);
  // If it fails the room is missing, and the writer that needs it says so.
  if (file && size_of(*file) > bytes)
    static_cast<void>(ftruncate(file->get(), static_cast<off_t>(bytes)) == 0);
}

void Reserve::give_back() const {
  shrink_to(kStarts);
}

void Reserve::make_room_for_start() const {
  if (!has_disk_room_for(kNeededAtStart)) give_back_start();
}

kube::Result<void> Reserve::replace(const std::string& name, std::string_view text) const {
  constexpr int kTries = 4;  // another program may take the room meanwhile
  auto written = folder_.replace(name, text);
  for (int tries = 1; !written && tries < kTries && is_disk_full(); ++tries) {
    give_back_start();
    written = folder_.replace(name, text);
  }
  return written;
}

void Reserve::give_back_start() const {
  const auto file = folder_.open_file(kReserveFile, O_RDONLY);
  const std::size_t size = file ? size_of(*file) : 0;
  shrink_to(size > kNeededAtStart ? size - kNeededAtStart : 0);
}

bool Reserve::is_disk_full() const {
  return !has_disk_room_for(kBytes);
}

bool Reserve::has_disk_room_for(std::size_t bytes) const {
  struct statvfs disk {};
  if (statvfs(folder_.path().c_str(), &disk) != 0) return true;
  return static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize >= bytes;
}

}  // namespace trainer
