// The watcher reports when a file has been put into a directory.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <functional>
#include <map>

#include "kube/client/task.hh"

namespace trainer::node {

// It uses inotify, for files that are renamed into place. If the kernel has no watches left,
// watch() says so: the caller reads at intervals. Concurrency: the thread of its executor.
class DirectoryWatcher {
 public:
  explicit DirectoryWatcher(const kube::asio::any_io_executor& executor);

  // Returns the number of the watch, with which it is forgotten; -1 says that there is none.
  int watch(const std::filesystem::path& directory, std::function<void()> on_change);
  void forget(int watch);
  kube::Task<void> run();

 private:
  void handle(const char* bytes, std::size_t size);

  boost::asio::posix::stream_descriptor events_;
  std::map<int, std::function<void()>> handlers_;
};

}  // namespace trainer::node
