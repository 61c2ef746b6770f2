#include "local/node/log_reader.hh"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "local/node/log_writer.hh"

namespace trainer::node {

namespace {

constexpr std::size_t kPiece = 65'536;

Fd open_to_read(const std::filesystem::path& path) {
  return Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

off_t size_of(const Fd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

// The result is 0 if there is none.
ino_t inode_of(const Fd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 ? status.st_ino : 0;
}

// Returns where the last `lines` lines begin. If the file has fewer, the number of missing ones is
// left in `lines`.
off_t find_tail(const Fd& file, std::int64_t& lines) {
  std::array<char, kPiece> piece;
  off_t at = size_of(file);
  bool is_last = true;  // the line feed at the end of the file begins no line
  while (at > 0) {
    const off_t begin = std::max<off_t>(0, at - static_cast<off_t>(piece.size()));
    const ssize_t got =
        pread(file.get(), piece.data(), static_cast<std::size_t>(at - begin), begin);
    for (ssize_t i = got; i-- > 0;) {
      if (piece[static_cast<std::size_t>(i)] != '\n') continue;
      if (!std::exchange(is_last, false) && --lines == 0) return begin + i + 1;
    }
    if (got <= 0) break;
    at = begin;
  }
  if (!is_last) --lines;  // the first line of the file
  return 0;
}

}  // namespace

LogReader::LogReader(std::filesystem::path file, LogSelection selection)
    : path_(std::move(file)), selection_(std::move(selection)) {
  for (const auto& path : {older_log_file(path_), path_})
    if (Fd opened = open_to_read(path)) files_.push_back(std::move(opened));
  if (selection_.since) since_ = selection_.since->to_micro_string();
  if (!since_.empty()) since_.pop_back();  // Z would not sort before further digits
  if (selection_.tail_lines) skip_to_tail(*selection_.tail_lines);
}

void LogReader::skip_to_tail(std::int64_t lines) {
  for (std::size_t i = files_.size(); i-- > 0;) {
    const off_t begin = lines > 0 ? find_tail(files_[i], lines) : size_of(files_[i]);
    lseek(files_[i].get(), begin, SEEK_SET);
  }
}

std::string LogReader::next() {
  std::string out;
  std::array<char, kPiece> piece;
  while (out.empty() && !files_.empty() && !is_full()) {
    const ssize_t got = read(files_.front().get(), piece.data(), piece.size());
    if (got > 0) {
      rest_.append(piece.data(), static_cast<std::size_t>(got));
      add_lines(out);
    } else if (!open_successor()) {
      break;
    }
  }
  return out;
}

// It is called at the end of a file. Returns false if more may come to this one.
bool LogReader::open_successor() {
  if (files_.size() == 1) {
    Fd fresh = open_to_read(path_);
    const Fd& here = files_.front();
    if (!fresh || inode_of(fresh) == inode_of(here) || is_of_earlier_start() ||
        lseek(here.get(), 0, SEEK_CUR) < size_of(here))
      return false;
    files_.push_back(std::move(fresh));
  }
  files_.erase(files_.begin());
  return true;
}

bool LogReader::is_of_earlier_start() const {
  const Fd previous = open_to_read(previous_log_file(path_));
  return previous && !files_.empty() && inode_of(previous) == inode_of(files_.back());
}

void LogReader::add_lines(std::string& out) {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    add_line(std::string_view(rest_).substr(begin, end - begin), out);
  rest_.erase(0, begin);
}

// The line is "TIME stdout F text".
void LogReader::add_line(std::string_view line, std::string& out) {
  const auto time = line.find(' ');
  const auto stream = line.find(' ', time + 1);
  if (time == std::string_view::npos || stream == std::string_view::npos ||
      stream + 3 > line.size() || is_full())
    return;
  if (!since_.empty() && line.substr(0, since_.size()) < since_) return;
  const std::size_t before = out.size();
  if (selection_.has_timestamps && !is_continued_) out += line.substr(0, time + 1);
  out += line.substr(stream + 3);
  is_continued_ = line[stream + 1] == 'P';
  if (!is_continued_) out += '\n';
  if (!selection_.limit_bytes) return;
  const auto room = static_cast<std::size_t>(*selection_.limit_bytes);
  out.resize(std::min(out.size(), before + room));
  *selection_.limit_bytes -= static_cast<std::int64_t>(out.size() - before);
}

}  // namespace trainer::node
