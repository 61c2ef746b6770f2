#include "local/node/log_writer.hh"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace trainer::node {

namespace {

// This is kubelet's bound of a termination message that is taken from the log: 2,048 bytes or 80
// lines.
constexpr std::size_t kMaxTail = 2'048;
constexpr int kMaxTailLines = 80;

Fd open_to_append(const std::filesystem::path& path) {
  return Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
}

}  // namespace

std::filesystem::path log_file(const std::filesystem::path& pod, std::string_view container,
                               bool is_previous) {
  const auto current = pod / "logs" / (std::string(container) + ".log");
  return is_previous ? previous_log_file(current) : current;
}

std::filesystem::path older_log_file(const std::filesystem::path& log) {
  return log.native() + ".1";
}

std::filesystem::path previous_log_file(const std::filesystem::path& log) {
  return std::filesystem::path(log).replace_extension(".previous.log");
}

LogWriter::LogWriter(std::filesystem::path file, std::int64_t max_bytes)
    : path_(std::move(file)), max_bytes_(max_bytes), file_(open_to_append(path_)) {
  struct stat status {};
  if (file_ && fstat(file_.get(), &status) == 0) size_ = status.st_size;
}

void LogWriter::write(Stream stream, std::string_view bytes, kube::Time now) {
  std::string& rest = rest_[stream];
  while (!bytes.empty()) {
    const std::size_t room = kMaxLine - rest.size();
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos && bytes.size() < room) {
      rest += bytes;
      break;
    }
    const bool is_whole = end <= room;
    const std::size_t length = is_whole ? end : room;
    rest += bytes.substr(0, length);
    add_line(stream, rest, is_whole, now);
    rest.clear();
    bytes.remove_prefix(length + (is_whole ? 1 : 0));
  }
  flush();
}

void LogWriter::finish(kube::Time now) {
  for (const Stream stream : {kOut, kErr}) {
    if (!rest_[stream].empty()) add_line(stream, rest_[stream], true, now);
    rest_[stream].clear();
  }
  flush();
}

std::string LogWriter::tail() const {
  std::string_view text = tail_;
  if (text.size() > kMaxTail) text.remove_prefix(text.size() - kMaxTail);
  std::size_t begin = text.size();
  for (int lines = 0; lines < kMaxTailLines && begin > 0; ++lines) {
    const auto at = begin < 2 ? std::string_view::npos : text.rfind('\n', begin - 2);
    begin = at == std::string_view::npos ? 0 : at + 1;
  }
  return std::string(text.substr(begin));
}

void LogWriter::add_line(Stream stream, std::string_view text, bool is_whole, kube::Time now) {
  std::string time = now.to_micro_string();
  time.insert(time.size() - 1, "000");
  pending_ += time;
  pending_ += stream == kOut ? " stdout " : " stderr ";
  pending_ += is_whole ? "F " : "P ";
  pending_ += text;
  pending_ += '\n';
  tail_ += text;
  if (is_whole) tail_ += '\n';
  if (tail_.size() > 2 * kMaxTail) tail_.erase(0, tail_.size() - kMaxTail);
}

void LogWriter::flush() {
  if (pending_.empty()) return;
  if (size_ > 0 && size_ + static_cast<std::int64_t>(pending_.size()) > max_bytes_) {
    rename(path_.c_str(), older_log_file(path_).c_str());
    file_.reset();
    size_ = 0;
    is_cut_ = false;
  }
  if (!file_) file_ = open_to_append(path_);
  if (is_cut_) pending_.insert(0, 1, '\n');
  std::string_view left = pending_;
  while (!left.empty()) {
    const ssize_t put = ::write(file_.get(), left.data(), left.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    left.remove_prefix(static_cast<std::size_t>(put));
    size_ += put;
  }
  const std::size_t put = pending_.size() - left.size();
  if (put > 0) is_cut_ = pending_[put - 1] != '\n';
  pending_.clear();
}

}  // namespace trainer::node
