// Says when a file has been put into a directory.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <functional>
#include <map>

#include "kube/client/task.hh"

namespace trainer::node {

// By inotify, of files that are renamed into place. Where the kernel has no watches left, it says
// so by watch(): the caller reads now and then. Concurrency: the thread of its executor.
class DirectoryWatcher {
 public:
  explicit DirectoryWatcher(const kube::asio::any_io_executor& executor);

  // The number of the watch, to forget it by; -1: there is none.
  int watch(const std::filesystem::path& directory, std::function<void()> on_change);
  void forget(int watch);
  kube::Task<void> run();

 private:
  void handle(const char* bytes, std::size_t size);

  boost::asio::posix::stream_descriptor events_;
  std::map<int, std::function<void()>> handlers_;
};

}  // namespace trainer::node
