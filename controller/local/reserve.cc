#include "controller/local/reserve.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>

namespace trainer {
namespace {

constexpr const char* kFile = "reserve";
// A delete writes some pages of the database, a start its log and some small files.
constexpr off_t kBytes = 1 << 20;
constexpr off_t kLeast = 64 << 10;

off_t size_of(const node::Fd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

}  // namespace

bool Reserve::fill() const {
  const auto file = folder_.open_file(kFile, O_RDWR | O_CREAT);
  if (!file) return false;
  const off_t before = size_of(*file);
  for (off_t size = kBytes; size >= kLeast && size > before; size /= 2) {
    if (posix_fallocate(file->get(), 0, size) == 0) return size == kBytes;
    if (ftruncate(file->get(), before) != 0) return false;
  }
  return before >= kBytes;
}

bool Reserve::give_back() const {
  const auto file = folder_.open_file(kFile, O_RDWR);
  return file && size_of(*file) > 0 && ftruncate(file->get(), 0) == 0;
}

void Reserve::make_room_for_start() const {
  struct statvfs disk {};
  if (statvfs(folder_.path().c_str(), &disk) != 0) return;
  if (static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize < kBytes / 2) give_back();
}

}  // namespace trainer
