#include "controller/cli/log_lines.hh"

#include <algorithm>
#include <cctype>

#include "kube/model/time.hh"

namespace trainer {
namespace {

constexpr std::size_t kMaxLine = 1U << 20;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// kube::Time has microseconds, log lines nanoseconds: two lines a microsecond apart must stay two.
std::int32_t nanoseconds_of(std::string_view timestamp) {
  const auto dot = timestamp.find('.');
  if (dot == std::string_view::npos) return 0;
  std::int32_t value = 0;
  std::size_t at = dot + 1;
  for (int digit = 0; digit < 9; ++digit) {
    const bool has_digit = at < timestamp.size() && is_digit(timestamp[at]);
    value = value * 10 + (has_digit ? timestamp[at++] - '0' : 0);
  }
  return value;
}

}  // namespace

std::optional<LogLine::Instant> LogLine::instant() const {
  const auto time = kube::Time::parse(timestamp);
  if (!time) return std::nullopt;
  return Instant{time->seconds(), nanoseconds_of(timestamp)};
}

LogLine read_log_line(std::string_view line) {
  const auto space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  if (word.size() < 20 || !is_digit(word.front()) || !kube::Time::parse(word))
    return {"", std::string(line)};
  return {std::string(word),
          space == std::string_view::npos ? std::string() : std::string(line.substr(space + 1))};
}

std::optional<std::string> LineSplitter::next(bool is_over) {
  const auto end = std::min(text_.find('\n', begin_), text_.size());
  const auto size = end - begin_;
  if (end == text_.size() && size <= kMaxLine && !(is_over && size > 0)) {
    text_.erase(0, std::exchange(begin_, 0));
    return std::nullopt;
  }
  std::string line = text_.substr(begin_, size);
  is_within_line_ = end == text_.size() && !is_over;
  begin_ = std::min(end + 1, text_.size());
  return line;
}

void LogCursor::begin_stream() {
  is_catching_up_ = last_.has_value();
  to_skip_ = seen_;
}

bool LogCursor::is_new(const LogLine& line) {
  if (!line.is_continued) was_new_ = is_new_start(line);
  return was_new_;
}

bool LogCursor::is_new_start(const LogLine& line) {
  const auto instant = line.instant();
  // Only the container runtime's own messages have no time; they may be printed twice.
  if (!instant) return true;
  if (is_catching_up_) {
    if (*instant < *last_) return false;
    if (*instant == *last_ && to_skip_ > 0) {
      --to_skip_;
      return false;
    }
    is_catching_up_ = false;
  }
  // Standard output and error get their times separately, so a line may be older than the last.
  if (!last_ || *instant > *last_) {
    last_ = instant;
    seen_ = 1;
  } else if (*instant == *last_) {
    ++seen_;
  }
  return true;
}

std::optional<std::string> LogCursor::since_time() const {
  if (!last_) return std::nullopt;
  return kube::Time::from_seconds(last_->first).to_string();
}

}  // namespace trainer
