// Waits for edits of the folder of `--code`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/code_files.hh"
#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace trainer {

struct CodeEdit {
  std::vector<CodeEntry> entries;    // all of the folder
  std::vector<std::string> changed;  // see changed_paths()
};

// Concurrency: the thread of `io`. An edit is what has changed since the edit before, after the
// folder was quiet for 200 ms.
class CodeWatcher {
 public:
  using Say = std::function<void(std::string_view sentence)>;
  CodeWatcher(kube::asio::io_context& io, kube::Clock& clock, Say say)
      : descriptor_(io), clock_(clock), say_(std::move(say)) {}

  // Watches the folder from now on; `entries` were read from it before. Errors: see read_code();
  // kTooLarge: the limit of inotify.
  kube::Result<void> begin(const std::string& folder, std::vector<CodeEntry> entries);

  // Waits for the next edit. A folder that cannot be read then is said, and waited for. Errors: the
  // limit of inotify.
  kube::Task<kube::Result<CodeEdit>> next();

 private:
  kube::Result<void> watch(const CodeFolder& folder);
  // Reads again while folders appear that were not watched.
  kube::Result<CodeFolder> read();
  kube::Task<kube::Result<CodeFolder>> read_patiently();
  kube::Task<void> wait_for_events();
  bool take_events();

  kube::asio::posix::stream_descriptor descriptor_;
  kube::Clock& clock_;
  Say say_;
  std::string folder_;
  std::vector<CodeEntry> entries_;
  bool is_limit_met_ = false;  // the one of inotify
  bool is_read_ = false;       // something may have changed before the folder was watched
};

}  // namespace trainer
