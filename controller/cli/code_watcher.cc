#include "controller/cli/code_watcher.hh"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "controller/cli/code_change.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Result;
using kube::Task;

constexpr std::chrono::milliseconds kQuiet{200};
constexpr std::chrono::milliseconds kRetry{1000};
constexpr int kMostReads = 5;
constexpr int kMostPauses = 25;  // a folder that is written without an end is read nevertheless
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                  IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

tl::unexpected<kube::Error> beyond_inotify(const std::string& folder, std::string_view limit) {
  return kube::fail(ErrorCode::kTooLarge,
                    "--watch: --code {}: it has more folders than this machine watches: raise {} "
                    "by sysctl, or leave folders out by .trainerignore",
                    folder, limit);
}

}  // namespace

Result<void> CodeWatcher::begin(const std::string& folder, std::vector<CodeEntry> entries) {
  folder_ = folder;
  entries_ = std::move(entries);
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return beyond_inotify(folder_, "fs.inotify.max_user_instances");
  descriptor_.assign(descriptor);
  if (const auto found = read(); !found) return tl::unexpected(found.error());
  return {};
}

Result<void> CodeWatcher::watch(const CodeFolder& folder) {
  const auto add = [this](const std::string& path) {
    const int added =
        inotify_add_watch(descriptor_.native_handle(), path.c_str(), kEvents | IN_ONLYDIR);
    return added >= 0 || errno != ENOSPC;  // a folder that is gone again is no error
  };
  bool is_done = add(folder.root);
  for (const CodeEntry& entry : folder.entries)
    if (entry.kind == CodeEntry::Kind::kDirectory)
      is_done = is_done && add(folder.root + "/" + entry.path);
  is_limit_met_ = !is_done;
  if (is_limit_met_) return beyond_inotify(folder_, "fs.inotify.max_user_watches");
  return {};
}

Result<CodeFolder> CodeWatcher::read() {
  const auto directories_of = [](const CodeFolder& folder) {
    std::set<std::string> all;
    for (const CodeEntry& entry : folder.entries)
      if (entry.kind == CodeEntry::Kind::kDirectory) all.insert(entry.path);
    return all;
  };
  auto found = read_code(folder_);
  for (;;) {
    if (!found) return found;
    if (auto done = watch(*found); !done) return tl::unexpected(done.error());
    auto again = read_code(folder_);
    if (!again || directories_of(*again) == directories_of(*found)) return again;
    found = std::move(again);
  }
}

Task<void> CodeWatcher::wait_for_events() {
  co_await descriptor_.async_wait(kube::asio::posix::stream_descriptor::wait_read,
                                  kube::asio::use_awaitable);
  take_events();
  for (int i = 0; i < kMostPauses; ++i) {
    co_await kube::sleep(clock_, kQuiet);
    if (!take_events()) co_return;
  }
}

bool CodeWatcher::take_events() {
  alignas(inotify_event) std::array<char, 16384> buffer;
  bool has_any = false;
  while (::read(descriptor_.native_handle(), buffer.data(), buffer.size()) > 0) has_any = true;
  return has_any;
}

// A file may be gone for the moment in which an editor replaces it. Nothing reports a folder that
// is made again, since its watch went with it.
Task<Result<CodeFolder>> CodeWatcher::read_patiently() {
  for (int tries = 1;; ++tries) {
    auto found = read();
    const bool may_come = !found && found.error().code == ErrorCode::kNotFound;
    if (found || (tries >= kMostReads && !may_come)) co_return found;
    if (tries == kMostReads) say_(found.error().message);
    co_await kube::sleep(clock_, tries < kMostReads ? kQuiet : kRetry);
  }
}

Task<Result<CodeEdit>> CodeWatcher::next() {
  for (;;) {
    if (std::exchange(is_read_, true)) co_await wait_for_events();
    auto found = co_await read_patiently();
    if (is_limit_met_) co_return tl::unexpected(found.error());
    if (!found) {
      say_(found.error().message);
      continue;
    }
    CodeEdit edit{std::move(found->entries), {}};
    edit.changed = changed_paths(entries_, edit.entries);
    if (edit.changed.empty()) continue;
    entries_ = edit.entries;
    co_return edit;
  }
}

}  // namespace trainer
