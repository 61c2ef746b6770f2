#include "local/node/strays.hh"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "local/node/files.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

namespace {

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir("/proc"), closedir);
  while (const dirent* entry = listing ? readdir(listing.get()) : nullptr) {
    pid_t process = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, process).ptr == end) found.push_back(process);
  }
  return found;
}

// Returns 0 for a process that is gone or has ended and only waits to be reaped.
pid_t parent_of(pid_t process) {
  const auto text = read_file("/proc/" + std::to_string(process) + "/stat");
  // The text is "12 (name, maybe with spaces) S 3 ...": the parent is behind the state.
  const auto at = text ? text->rfind(')') : std::string::npos;
  if (at == std::string::npos || text->size() < at + 4 || (*text)[at + 2] == 'Z') return 0;
  pid_t parent = 0;
  std::from_chars(text->data() + at + 4, text->data() + text->size(), parent);
  return parent;
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t process : all_processes()) children.emplace(parent_of(process), process);
  std::vector<pid_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

void kill_descendants() {
  constexpr int kRounds = 100;
  constexpr timespec kPause{0, 10'000'000};
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<pid_t> left = descendants_of(getpid());
    if (left.empty()) return;
    for (const pid_t process : left) kill(process, SIGKILL);
    nanosleep(&kPause, nullptr);
  }
}

bool kill_marked(const std::string& pod_uid) {
  const std::string marker = std::string(kPodMarker) + "=" + pod_uid;
  bool is_clean = true;
  for (const pid_t process : all_processes()) {
    auto environment = read_file("/proc/" + std::to_string(process) + "/environ");
    if (!environment || environment->empty()) continue;
    environment->insert(environment->begin(), '\0');
    if (environment->find('\0' + marker + '\0') == std::string::npos) continue;
    is_clean = false;
    kill(process, SIGKILL);
  }
  return is_clean;
}

}  // namespace trainer::node
