#include "local/node/directory_watcher.hh"

#include <sys/inotify.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <vector>

namespace trainer::node {

DirectoryWatcher::DirectoryWatcher(const kube::asio::any_io_executor& executor)
    : events_(executor) {
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor >= 0) events_.assign(descriptor);
}

int DirectoryWatcher::watch(const std::filesystem::path& directory,
                            std::function<void()> on_change) {
  if (!events_.is_open()) return -1;
  const int watch = inotify_add_watch(events_.native_handle(), directory.c_str(), IN_MOVED_TO);
  if (watch >= 0) handlers_[watch] = std::move(on_change);
  return watch;
}

void DirectoryWatcher::forget(int watch) {
  if (handlers_.erase(watch) > 0) inotify_rm_watch(events_.native_handle(), watch);
}

kube::Task<void> DirectoryWatcher::run() {
  if (!events_.is_open()) co_return;
  std::array<char, 16'384> bytes;
  for (;;) {
    const std::size_t size =
        co_await events_.async_read_some(boost::asio::buffer(bytes), boost::asio::use_awaitable);
    handle(bytes.data(), size);
  }
}

void DirectoryWatcher::handle(const char* bytes, std::size_t size) {
  for (std::size_t at = 0; at + sizeof(inotify_event) <= size;) {
    inotify_event event{};
    std::memcpy(&event, bytes + at, sizeof event);
    at += sizeof event + event.len;
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      for (const auto& [watch, on_change] : handlers_) on_change();
    } else if (const auto found = handlers_.find(event.wd); found != handlers_.end()) {
      found->second();
    }
  }
}

}  // namespace trainer::node
