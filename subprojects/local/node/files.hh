// These are descriptors and small files of this machine.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/error.hh"

namespace trainer::node {

// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
  static kube::Result<Pipe> make();
};

// The C library's declarations of these system calls (glibc 2.36) are not C++. The result is empty
// on failure.
Fd open_process(pid_t process);
Fd copy_descriptor(const Fd& process, int number);

// Sends one message on a Unix socket, with a descriptor, unless that is below 0. `bytes` are not
// empty. Returns false if it failed, by errno.
bool send_message(int socket, std::string_view bytes, int descriptor, int flags = 0);
// Waits for a message and returns its size, 0 at the end, and less than that if it failed, by
// errno. `descriptor` becomes the one that came with it, if one did.
ssize_t receive_message(int socket, void* bytes, std::size_t size, Fd& descriptor);

// Returns "WHAT: Permission denied", by errno.
tl::unexpected<kube::Error> system_failure(std::string_view what);
// Returns the same about a file or folder that is written. If the disk is full, it says what to do.
tl::unexpected<kube::Error> write_failure(const std::filesystem::path& path);

// Returns false if it failed, by errno.
bool write_all(const Fd& file, std::string_view text);
// Errors name `path`.
kube::Result<std::string> read_opened(const Fd& file, const std::filesystem::path& path,
                                      std::size_t bytes = std::numeric_limits<std::size_t>::max());
kube::Result<std::string> read_file(const std::filesystem::path& path);
// Reads at most so many bytes of a path that may be a file of any size, or no file: it never waits.
kube::Result<std::string> read_head(const std::filesystem::path& path, std::size_t bytes);
// Writes in place: other processes may have the file open, or mounted.
kube::Result<void> write_file(const std::filesystem::path& path, std::string_view text,
                              mode_t mode = 0600);
// Readers see the old text or the new one.
kube::Result<void> replace_file(const std::filesystem::path& path, std::string_view text,
                                mode_t mode = 0600);
// Returns a name that a user has written in the form of errors: its beginning, in quotes.
std::string quoted_name(std::string_view name);
// Returns FOLDER/NAME, where NAME is one component of a path: every name that a user has written
// goes through here, or through path_below(), before it is a part of a path. Errors (kUnsupported):
// it is empty, "." or "..", too long, or has a "/" or a NUL in it.
kube::Result<std::filesystem::path> child_of(const std::filesystem::path& folder,
                                             std::string_view name);
// Does the same with a relative path of any length, such as a subPath; "." and empty components are
// left out. An empty path is the folder itself.
kube::Result<std::filesystem::path> path_below(const std::filesystem::path& folder,
                                               std::string_view path);
// Makes them with their parents, mode 0700.
kube::Result<void> make_directories(const std::filesystem::path& path);
// Opens (O_PATH) the target of a relative path, which is made as a folder if it is missing. Links
// may lead anywhere in the folder, none out of it, at no moment. Errors name the path; if it is
// empty, the folder itself.
kube::Result<Fd> open_beneath(const std::filesystem::path& folder,
                              const std::filesystem::path& path);

}  // namespace trainer::node
