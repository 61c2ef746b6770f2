#include "local/node/sandbox.hh"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>

#include "local/node/files.hh"

namespace trainer::node {

namespace {

using kube::Result;

// Unlike write_file(), this is for files that the kernel reads from one write.
Result<void> write_to_kernel(const char* path, const std::string& text) {
  const Fd file(open(path, O_WRONLY | O_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_failure(path);
  return {};
}

// Maps one user and one group, whose numbers inside are those that the pod asks for; without these
// they stay.
Result<void> map_ids(const PodConfig& pod, uid_t user, gid_t group) {
  if (auto denied = write_to_kernel("/proc/self/setgroups", "deny"); !denied) return denied;
  const auto map = [](std::optional<std::int64_t> inside, std::int64_t outside) {
    return fmt::format("{} {} 1", inside.value_or(outside), outside);
  };
  if (auto mapped = write_to_kernel("/proc/self/gid_map", map(pod.run_as_group, group)); !mapped)
    return mapped;
  return write_to_kernel("/proc/self/uid_map", map(pod.run_as_user, user));
}

// root needs no user namespace, and without one it keeps all its users. A root with few rights, for
// example in a container, is tried like any other user.
Result<void> leave_namespaces(const PodConfig& pod) {
  constexpr int kFlags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const bool is_root = user == 0 && pod.run_as_user.value_or(0) == 0;
  if (is_root && unshare(kFlags) == 0) return {};
  if (unshare(kFlags | CLONE_NEWUSER) != 0) return system_failure("user namespace");
  return map_ids(pod, user, group);
}

// The process that stays outside of the namespaces passes signals of the agent on to the other one.
[[noreturn]] void relay_to(pid_t first) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGCHLD);
  for (;;) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&awaited, &info);
    if (signal == SIGTERM) {
      if (info.si_code == SI_QUEUE)
        sigqueue(first, SIGTERM, info.si_value);
      else
        kill(first, SIGTERM);
    }
    int status = 0;
    if (signal == SIGCHLD && waitpid(first, &status, WNOHANG) == first)
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
}

Result<void> mount_at(const char* source, const std::string& target, const char* type,
                      unsigned long flags, const std::string& data = {}) {
  if (mount(source, target.c_str(), type, flags, data.empty() ? nullptr : data.c_str()) != 0)
    return system_failure("mount " + target);
  return {};
}

Result<void> bind(const std::string& source, const std::string& target) {
  return mount_at(source.c_str(), target, nullptr, MS_BIND | MS_REC);
}

// A mount of an ordinary user must keep the restrictions of the host's mount.
Result<void> make_read_only(const std::string& target) {
  struct statvfs host {};
  if (statvfs(target.c_str(), &host) != 0) return system_failure(target);
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
  if ((host.f_flag & ST_NOSUID) != 0) flags |= MS_NOSUID;
  if ((host.f_flag & ST_NODEV) != 0) flags |= MS_NODEV;
  if ((host.f_flag & ST_NOEXEC) != 0) flags |= MS_NOEXEC;
  if ((host.f_flag & ST_NOATIME) != 0) flags |= MS_NOATIME;
  if ((host.f_flag & ST_NODIRATIME) != 0) flags |= MS_NODIRATIME;
  if ((host.f_flag & ST_RELATIME) != 0) flags |= MS_RELATIME;
  return mount_at(nullptr, target, nullptr, flags);
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) &&
         (folder == "/" || path[folder.size()] == '/');
}

// Consoles and similar mounts are hundreds that no container uses.
bool is_console(std::string_view name) {
  return (name.starts_with("tty") && name.size() > 3) || name.starts_with("vcs") ||
         name.starts_with("loop") || name.starts_with("ram");
}

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  while (const dirent* entry = listing ? readdir(listing.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != ".." && (folder != "/dev" || !is_console(name)))
      names.emplace_back(name);
  }
  return names;
}

Result<void> make_file(const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return system_failure(path);
  return {};
}

Result<void> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return kube::fail(kube::ErrorCode::kInternal, "{}: {}", path, error.message());
  return {};
}

class Tree {
 public:
  Tree(std::string root, const TreePlan& plan)
      : root_(std::move(root)),
        opened_(plan.opened.begin(), plan.opened.end()),
        replaced_(plan.replaced.begin(), plan.replaced.end()) {}

  Result<void> open_folder(const std::string& folder) {
    for (const std::string& name : entries_of(folder)) {
      const std::string path = folder == "/" ? "/" + name : folder + "/" + name;
      if (replaced_.contains(path)) continue;
      if (auto added = add_entry(path); !added) return added;
    }
    return {};
  }

  Result<void> put_in(const Mount& mount) {
    const std::string target = root_ + mount.target;
    struct stat status {};
    const bool is_folder = mount.source.empty() ||
                           (stat(mount.source.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
    if (lstat(target.c_str(), &status) != 0) {
      auto made = make_folder(is_folder ? target : target.substr(0, target.rfind('/')));
      if (made && !is_folder) made = make_file(target);
      if (!made) return made;
    }
    if (mount.source.empty()) return {};
    if (auto bound = bind(mount.source, target); !bound) return bound;
    return mount.is_read_only ? make_read_only(target) : Result<void>();
  }

 private:
  Result<void> add_entry(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return {};  // gone meanwhile, or out of reach
    const std::string target = root_ + path;
    if (S_ISLNK(status.st_mode)) {
      std::error_code error;
      std::filesystem::copy_symlink(path, target, error);
      return {};
    }
    if (auto made = S_ISDIR(status.st_mode) ? make_folder(target) : make_file(target); !made)
      return made;
    if (opened_.contains(path)) return open_folder(path);
    // A folder that cannot be mounted (a network's file system that is gone) exists, but is empty.
    static_cast<void>(bind(path, target));
    return {};
  }

  const std::string root_;
  const std::set<std::string> opened_, replaced_;
};

}  // namespace

Result<void> enter_namespaces(const PodConfig& pod) {
  if (auto left = leave_namespaces(pod); !left) return left;
  const pid_t first = fork();
  if (first < 0) return system_failure("fork");
  if (first > 0) relay_to(first);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (sethostname(pod.hostname.data(), pod.hostname.size()) != 0)
    return system_failure("host name " + pod.hostname);
  // The host's later mounts arrive here, and none goes back.
  if (auto done = mount_at(nullptr, "/", nullptr, MS_REC | MS_SLAVE); !done) return done;
  constexpr unsigned long kSafe = MS_NOSUID | MS_NODEV;
  if (auto done = mount_at("proc", "/proc", "proc", kSafe | MS_NOEXEC); !done) return done;
  for (const MemoryVolume& volume : pod.memory_volumes) {
    std::string data = "mode=1777";
    if (volume.size > 0) data += fmt::format(",size={}", volume.size);
    if (auto done = mount_at("tmpfs", volume.path, "tmpfs", kSafe, data); !done) return done;
  }
  return {};
}

Result<TreePlan> plan_tree(const std::vector<Mount>& mounts) {
  std::set<std::string> opened{"/"};
  TreePlan plan;
  for (const Mount& mount : mounts) {
    const bool is_nested = std::any_of(mounts.begin(), mounts.end(), [&mount](const Mount& other) {
      return is_below(mount.target, other.target);
    });
    std::error_code error;
    const auto there = std::filesystem::status(mount.target, error);
    const bool is_folder =
        mount.source.empty() || std::filesystem::is_directory(mount.source, error);
    const bool is_there = std::filesystem::exists(there);
    if (is_nested || (is_there && std::filesystem::is_directory(there) == is_folder)) continue;
    if (is_there) plan.replaced.push_back(mount.target);
    auto above = std::filesystem::path(mount.target).parent_path();
    while (!std::filesystem::exists(above, error)) above = above.parent_path();
    if (!std::filesystem::is_directory(above, error))
      return kube::fail(kube::ErrorCode::kInvalid, "{}: {} is no directory on this machine",
                        mount.target, above.native());
    if (access(above.c_str(), R_OK | X_OK) != 0) return system_failure(above.native());
    for (; above != "/"; above = above.parent_path()) opened.insert(above);
  }
  // The cache of names would answer by the host's hosts file.
  if (access("/run/nscd/socket", F_OK) == 0) {
    opened.insert("/run");
    plan.replaced.emplace_back("/run/nscd");
  }
  plan.opened.assign(opened.begin(), opened.end());
  return plan;
}

Result<void> enter_tree(const std::string& root, std::vector<Mount> mounts) {
  // Other containers of the pod have other trees.
  if (unshare(CLONE_NEWNS) != 0) return system_failure("mount namespace");
  std::vector<Fd> sub_paths;  // their targets do not change until they are mounted
  for (Mount& mount : mounts) {
    std::error_code error;
    const auto real = std::filesystem::weakly_canonical(mount.target, error);
    if (!error) mount.target = real;
    while (mount.target.size() > 1 && mount.target.back() == '/') mount.target.pop_back();
    if (mount.sub_path.empty()) continue;
    auto found = open_beneath(mount.source, mount.sub_path);
    if (!found)
      return tl::unexpected(found.error().at(fmt::format("mount {}: subPath", mount.target)));
    mount.source = fmt::format("/proc/self/fd/{}", found->get());
    sub_paths.push_back(std::move(*found));
  }
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const Mount& a, const Mount& b) { return a.target < b.target; });
  const auto plan = plan_tree(mounts);
  if (!plan) return tl::unexpected(plan.error());
  if (auto done = mount_at("tmpfs", root, "tmpfs", MS_NOSUID, "mode=755"); !done) return done;
  // The folder that holds it is put into it, without it.
  if (auto done = mount_at(nullptr, root, nullptr, MS_UNBINDABLE); !done) return done;
  Tree tree(root, *plan);
  if (auto done = tree.open_folder("/"); !done) return done;
  for (const Mount& mount : mounts)
    if (auto done = tree.put_in(mount); !done) return done;
  if (auto done = mount_at(nullptr, root, nullptr, MS_PRIVATE); !done) return done;
  if (chdir(root.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
      umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
    return system_failure("pivot_root");
  return {};
}

}  // namespace trainer::node
