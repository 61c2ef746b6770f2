#include "local/node/files.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "kube/model/json_text.hh"
#include "kube/model/text.hh"
#include "kube/model/visible_text.hh"

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

bool send_message(int socket, std::string_view bytes, int descriptor, int flags) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | flags) > 0;
}

ssize_t receive_message(int socket, void* bytes, std::size_t size, Fd& descriptor) {
  iovec data{bytes, size};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return got;
  int received = -1;
  std::memcpy(&received, CMSG_DATA(header), sizeof received);
  descriptor = Fd(received);
  return got;
}

tl::unexpected<kube::Error> system_failure(std::string_view what) {
  const int error = errno;
  return kube::fail(error == ENOENT ? kube::ErrorCode::kNotFound : kube::ErrorCode::kInternal,
                    "{}: {}", what, std::generic_category().message(error));
}

tl::unexpected<kube::Error> write_failure(const std::filesystem::path& path) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  auto failure = system_failure(path.native());
  if (is_full) failure.value().message += ": make room on the disk that has it";
  return failure;
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
  if (!file || fchmod(file.get(), mode) != 0) return write_failure(path);
  // The file is shortened last, so that no reader sees an empty file.
  if (!write_all(file, text) || ftruncate(file.get(), static_cast<off_t>(text.size())) != 0)
    return write_failure(path);
  return {};
}

kube::Result<void> replace_file(const std::filesystem::path& path, std::string_view text,
                                mode_t mode) {
  const std::filesystem::path fresh = path.native() + ".new";
  if (auto written = write_file(fresh, text, mode); !written) return written;
  if (rename(fresh.c_str(), path.c_str()) != 0) return write_failure(path);
  return {};
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kShown = 80;
  const std::string_view head = kube::head_of(name, kShown);
  return kube::visible_text(kube::print_json(kube::Json(head))) +
         (head.size() < name.size() ? "..." : "");
}

kube::Result<std::filesystem::path> child_of(const std::filesystem::path& folder,
                                             std::string_view name) {
  constexpr std::size_t kLongestName = 255;  // NAME_MAX
  const bool is_special = name.empty() || name == "." || name == "..";
  const bool is_long = name.size() > kLongestName;
  if (!is_special && !is_long &&
      name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos)
    return folder / name;
  return kube::fail(
      kube::ErrorCode::kUnsupported, "{} cannot be the name of a file: {}", quoted_name(name),
      is_long ? fmt::format("it has {} bytes: use {} at most", name.size(), kLongestName)
              : "use letters, digits, '-', '_' and '.'");
}

kube::Result<std::filesystem::path> path_below(const std::filesystem::path& folder,
                                               std::string_view path) {
  kube::Result<std::filesystem::path> made = folder;
  if (path.starts_with('/'))
    return kube::fail(kube::ErrorCode::kUnsupported, "{} must be a relative path",
                      quoted_name(path));
  while (made && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") made = child_of(*made, name);
  }
  return made;
}

kube::Result<void> make_directories(const std::filesystem::path& path) {
  if (path.empty() || mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return write_failure(path);
  if (auto above = make_directories(path.parent_path()); !above) return above;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return write_failure(path);
  return {};
}

namespace {

// The result is empty, by errno: EXDEV if it leads out of the folder.
Fd open_in(const Fd& folder, const std::filesystem::path& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
}

// Makes the folder with its parents.
Fd make_in(const Fd& folder, const std::filesystem::path& path) {
  Fd found = open_in(folder, path);
  if (found || errno != ENOENT) return found;
  const auto parent = path.parent_path();
  const Fd above = parent.empty() ? open_in(folder, ".") : make_in(folder, parent);
  if (!above) return Fd();
  constexpr mode_t kMode = 0777;  // the umask applies to it
  if (mkdirat(above.get(), path.filename().c_str(), kMode) != 0 && errno != EEXIST) return Fd();
  return open_in(folder, path);
}

}  // namespace

kube::Result<Fd> open_beneath(const std::filesystem::path& folder,
                              const std::filesystem::path& path) {
  const Fd opened(open(folder.c_str(), O_PATH | O_CLOEXEC));
  if (!opened) return system_failure(folder.native());
  Fd found = make_in(opened, path.empty() ? std::filesystem::path(".") : path);
  if (found) return found;
  const std::string where = fmt::format("{} in {}", quoted_name(path.native()), folder.native());
  if (errno != EXDEV) return system_failure(where);
  return kube::fail(
      kube::ErrorCode::kUnsupported,
      "{}: a link in it leads out of the volume: remove the link, or name another path", where);
}

}  // namespace trainer::node
