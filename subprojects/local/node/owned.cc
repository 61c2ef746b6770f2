#include "local/node/owned.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <fstream>

namespace trainer::node {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxLinks = 40;  // the kernel has the same limit
constexpr mode_t kOwnFile = 0600;
constexpr mode_t kOwnMode = 0700;  // the mode of a folder
constexpr std::string_view kFolder = "folder";
constexpr std::string_view kFile = "file";

// Returns whether the user has no number in this user namespace. The directories of the machine's
// root look so in a container of an ordinary user.
bool is_unmapped(uid_t user) {
  std::ifstream map("/proc/self/uid_map");
  for (std::uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;)
    if (user >= inside && user - inside < count) return false;
  return map.eof();
}

// Returns whether a user has the group alone; adduser of Debian and Red Hat makes such groups. If
// the umask is 002, the group may write all that its user makes. (Debian's OpenSSH accepts it,
// too.)
bool is_own_group(gid_t group) {
  const passwd* const user = getpwuid(geteuid());
  const std::string name = user != nullptr ? user->pw_name : "";
  const ::group* const found = getgrgid(group);
  if (name.empty() || found == nullptr || name != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member)
    if (name != *member) return false;
  return true;
}

bool can_others_write(const struct stat& status) {
  const bool is_group_ok = (status.st_mode & S_IWGRP) == 0 || is_own_group(status.st_gid);
  return (status.st_mode & S_IWOTH) != 0 || !is_group_ok;
}

tl::unexpected<kube::Error> refuse(const fs::path& path, const struct stat& status,
                                   std::string_view why, const std::string& way_out,
                                   std::string_view named) {
  return kube::fail(kube::ErrorCode::kInvalid,
                    "{} (owner {}, mode {:04o}) {}, and what it holds would be carried out as user "
                    "{}: {}, or name another {}",
                    path.native(), status.st_uid, status.st_mode & 07777U, why, geteuid(), way_out,
                    named);
}

enum class Place { kAbove, kOwn };

// The user has named `named`, a folder or a file: errors say to name another one.
kube::Result<void> check(const struct stat& status, const fs::path& path, Place place,
                         std::string_view named) {
  const bool is_own = status.st_uid == geteuid();
  const bool is_above = place == Place::kAbove;
  if (!is_own && !(is_above && (status.st_uid == 0 || is_unmapped(status.st_uid)))) {
    return refuse(path, status, "belongs to another user",
                  fmt::format("if you trust it, `chown {} {}`", geteuid(), path.native()), named);
  }
  const bool is_sticky = is_above && (status.st_mode & S_ISVTX) != 0;
  if (S_ISLNK(status.st_mode) || is_sticky || !can_others_write(status)) return {};
  return refuse(path, status, "can be written by other users",
                fmt::format("`chmod go-w {}`", path.native()), named);
}

tl::unexpected<kube::Error> no_file(const fs::path& path, std::string_view what,
                                    std::string_view named) {
  return kube::fail(kube::ErrorCode::kInvalid, "{} is no {}: remove it, or name another {}",
                    path.native(), what, named);
}

std::string target_of(const Fd& link) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlinkat(link.get(), "", target.data(), target.size());
  return size < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
}

// Goes from the root to a folder, one name at a time.
class Walk {
 public:
  Walk(bool is_making, Place last, std::string_view named)
      : is_making_(is_making), last_(last), named_(named) {}

  kube::Result<void> go(const fs::path& absolute) {
    if (auto done = begin(absolute); !done) return done;
    while (!rest_.empty()) {
      const std::string name = std::move(rest_.front());
      rest_.pop_front();
      if (auto done = step(name); !done) return done;
    }
    return {};
  }
  Fd at;
  fs::path path;

 private:
  void put_first(const fs::path& names) {
    auto where = rest_.begin();
    for (const fs::path& name : names) {
      if (name == "/" || name == "." || name.empty()) continue;
      where = std::next(rest_.insert(where, name.native()));
    }
  }

  kube::Result<void> begin(const fs::path& target) {
    if (target.is_absolute()) {
      at = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
      path = "/";
    }
    put_first(target);
    return at ? enter(Fd()) : system_failure("/");
  }

  // Checks the folder, and goes on from there; without one, checks the present folder of the walk.
  kube::Result<void> enter(Fd folder) {
    struct stat status {};
    if (folder) at = std::move(folder);
    if (fstat(at.get(), &status) != 0) return system_failure(path.native());
    if (!S_ISDIR(status.st_mode)) return no_file(path, "folder", named_);
    return check(status, path, rest_.empty() ? last_ : Place::kAbove, named_);
  }

  kube::Result<void> step(const std::string& name) {
    constexpr int kPathOnly = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    Fd next(openat(at.get(), name.c_str(), kPathOnly));
    if (!next && errno == ENOENT && is_making_) {
      if (mkdirat(at.get(), name.c_str(), kOwnMode) != 0 && errno != EEXIST)
        return write_failure(path / name);
      next = Fd(openat(at.get(), name.c_str(), kPathOnly));
    }
    if (!next) return system_failure((path / name).native());
    struct stat status {};
    if (fstat(next.get(), &status) != 0) return system_failure((path / name).native());
    if (S_ISLNK(status.st_mode)) return follow(next, status, path / name);
    path = name == ".." ? path.parent_path() : path / name;
    return enter(std::move(next));
  }

  kube::Result<void> follow(const Fd& link, const struct stat& status, const fs::path& where) {
    if (auto done = check(status, where, Place::kAbove, named_); !done) return done;
    const std::string target = target_of(link);
    if (++links_ > kMaxLinks || target.empty())
      return no_file(where, "link that can be followed", named_);
    return begin(target);
  }

  const bool is_making_;
  const Place last_;
  const std::string_view named_;
  std::deque<std::string> rest_;
  int links_ = 0;
};

kube::Result<Fd> checked(Fd file, const fs::path& path, std::string_view named = kFolder) {
  if (!file && errno == ELOOP) return no_file(path, "file but a link", named);
  if (!file) return write_failure(path);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return system_failure(path.native());
  if (!S_ISREG(status.st_mode)) return no_file(path, "file", named);
  if (auto done = check(status, path, Place::kOwn, named); !done)
    return tl::unexpected(done.error());
  return file;
}

// This does not wait for the other end of a pipe that another user has put there.
constexpr int kFlags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

kube::Result<std::string> read_checked(const kube::Result<Fd>& file, const fs::path& path) {
  if (!file) return tl::unexpected(file.error());
  return read_opened(*file, path);
}

}  // namespace

kube::Result<OwnedDirectory> OwnedDirectory::open(const fs::path& path) {
  Walk walk(false, Place::kOwn, kFolder);
  if (auto done = walk.go(fs::absolute(path)); !done) return tl::unexpected(done.error());
  return OwnedDirectory(std::move(walk.at), std::move(walk.path));
}

kube::Result<OwnedDirectory> OwnedDirectory::make(const fs::path& path) {
  Walk walk(true, Place::kOwn, kFolder);
  if (auto done = walk.go(fs::absolute(path)); !done) return tl::unexpected(done.error());
  return OwnedDirectory(std::move(walk.at), std::move(walk.path));
}

kube::Result<OwnedDirectory> OwnedDirectory::make_folder(const std::string& name) const {
  const fs::path path = path_ / name;
  if (mkdirat(folder_.get(), name.c_str(), kOwnMode) != 0 && errno != EEXIST)
    return write_failure(path);
  Fd opened(openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened || fstat(opened.get(), &status) != 0) return system_failure(path.native());
  if (!S_ISDIR(status.st_mode)) return no_file(path, "folder", kFolder);
  if (auto done = check(status, path, Place::kOwn, kFolder); !done)
    return tl::unexpected(done.error());
  return OwnedDirectory(std::move(opened), path);
}

kube::Result<Fd> OwnedDirectory::open_file(const std::string& name, int flags) const {
  return checked(Fd(openat(folder_.get(), name.c_str(), flags | kFlags, kOwnFile)), path_ / name);
}

kube::Result<std::string> OwnedDirectory::read(const std::string& name) const {
  return read_checked(open_file(name, O_RDONLY), path_ / name);
}

bool OwnedDirectory::has(const std::string& name) const {
  return faccessat(folder_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

kube::Result<void> OwnedDirectory::replace(const std::string& name, std::string_view text) const {
  if (const auto kept = read(name); kept && *kept == text) return {};
  const std::string fresh = name + ".new";
  remove(fresh);
  auto file = open_file(fresh, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) return tl::unexpected(std::move(file.error()));
  const bool is_written = write_all(*file, text);
  if (close(file->release()) != 0 || !is_written || !rename(fresh, name))
    return write_failure(path_ / name);
  return {};
}

bool OwnedDirectory::rename(const std::string& from, const std::string& to) const {
  return renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) == 0;
}

bool OwnedDirectory::remove(const std::string& name) const {
  return unlinkat(folder_.get(), name.c_str(), 0) == 0;
}

kube::Result<Fd> open_owned(const fs::path& file, int flags) {
  const fs::path path = fs::absolute(file).lexically_normal();
  Walk walk(false, Place::kAbove, kFile);
  auto opened = walk.go(path.parent_path()).and_then([&] {
    return checked(Fd(openat(walk.at.get(), path.filename().c_str(), flags | kFlags, kOwnFile)),
                   path, kFile);
  });
  // The system's errors do not say what to do.
  if (!opened && opened.error().code != kube::ErrorCode::kInvalid)
    opened.error().message += ": let this user write a file there, or name another file";
  return opened;
}

kube::Result<Fd> open_owned_below(const fs::path& file, int flags) {
  return checked(Fd(::open(file.c_str(), flags | kFlags, kOwnFile)), file);
}

kube::Result<std::string> read_owned_below(const fs::path& file) {
  return read_checked(open_owned_below(file, O_RDONLY), file);
}

}  // namespace trainer::node
