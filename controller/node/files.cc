#include "controller/node/files.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "kube/model/json_text.hh"

namespace trainer::node {

kube::Result<Pipe> Pipe::make() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_failure("pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Fd open_process(pid_t process) {
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

Fd copy_descriptor(const Fd& process, int number) {
  return Fd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0)));
}

tl::unexpected<kube::Error> system_failure(std::string_view what) {
  const int error = errno;
  return kube::fail(error == ENOENT ? kube::ErrorCode::kNotFound : kube::ErrorCode::kInternal,
                    "{}: {}", what, std::generic_category().message(error));
}

bool write_all(const Fd& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(file.get(), text.data(), text.size());
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

kube::Result<std::string> read_opened(const Fd& file, const std::filesystem::path& path,
                                      std::size_t bytes) {
  if (!file) return system_failure(path.native());
  std::string text;
  char piece[16'384];
  while (text.size() < bytes) {
    const ssize_t got = read(file.get(), piece, std::min(sizeof piece, bytes - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(path.native());
    if (got == 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

kube::Result<std::string> read_file(const std::filesystem::path& path) {
  return read_opened(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
}

kube::Result<std::string> read_head(const std::filesystem::path& path, std::size_t bytes) {
  return read_opened(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), path, bytes);
}

kube::Result<void> write_file(const std::filesystem::path& path, std::string_view text,
                              mode_t mode) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode));
  if (!file || fchmod(file.get(), mode) != 0) return system_failure(path.native());
  // Shortened last, so that no reader sees an empty file.
  if (!write_all(file, text) || ftruncate(file.get(), static_cast<off_t>(text.size())) != 0)
    return system_failure(path.native());
  return {};
}

kube::Result<void> replace_file(const std::filesystem::path& path, std::string_view text,
                                mode_t mode) {
  const std::filesystem::path fresh = path.native() + ".new";
  if (auto written = write_file(fresh, text, mode); !written) return written;
  if (rename(fresh.c_str(), path.c_str()) != 0) return system_failure(path.native());
  return {};
}

kube::Result<std::filesystem::path> child_of(const std::filesystem::path& folder,
                                             std::string_view name) {
  constexpr std::size_t kLongestName = 255;  // NAME_MAX
  const bool is_special = name.empty() || name == "." || name == "..";
  if (!is_special && name.size() <= kLongestName &&
      name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos)
    return folder / name;
  constexpr std::size_t kShown = 80;
  return kube::fail(kube::ErrorCode::kUnsupported,
                    "{} cannot be the name of a file: use letters, digits, '-', '_' and '.'",
                    kube::print_json(kube::Json(name.substr(0, kShown))));
}

kube::Result<std::filesystem::path> path_below(const std::filesystem::path& folder,
                                               std::string_view path) {
  kube::Result<std::filesystem::path> made = folder;
  if (path.starts_with('/'))
    return kube::fail(kube::ErrorCode::kUnsupported, "{} must be a relative path", path);
  while (made && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") made = child_of(*made, name);
  }
  return made;
}

kube::Result<void> make_directories(const std::filesystem::path& path) {
  if (path.empty() || mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return system_failure(path.native());
  if (auto above = make_directories(path.parent_path()); !above) return above;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_failure(path.native());
  return {};
}

}  // namespace trainer::node
