// Structured log lines: one per decision, with the object's key. Levels by what they mean for an
// operator:
//   error  a problem that an operator must fix
//   warn   something was refused or retried; it may recover without help
//   info   a decision that explains what happened in the cluster
//   debug  every write, with its reason
// Never pass tokens, keys or Secret data: use Secret, which cannot be formatted.
#pragma once

#include <atomic>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kube {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

std::string_view name_of(LogLevel level);
// Returns nullopt for any other text than "error", "warn", "info" and "debug".
std::optional<LogLevel> parse_log_level(std::string_view name);

struct LogField {
  std::string_view key;
  std::string value;
};

// Concurrency: any thread may call all functions, also set_level(); a line is written with one
// write(2) to standard error.
class Log {
 public:
  enum class Format { kText, kJson };
  Log(LogLevel level, Format format) : level_(level), format_(format) {}

  void error(std::string_view what, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kError, what, fields);
  }
  void warn(std::string_view what, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kWarn, what, fields);
  }
  void info(std::string_view what, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kInfo, what, fields);
  }
  void debug(std::string_view what, std::initializer_list<LogField> fields = {}) const {
    write(LogLevel::kDebug, what, fields);
  }
  bool is_debug() const { return level() >= LogLevel::kDebug; }
  LogLevel level() const { return level_.load(std::memory_order_relaxed); }
  // The level applies to all lines from now on.
  void set_level(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  // Returns one line in its written form, without a time; tests use it.
  static std::string format_line(Format format, LogLevel level, std::string_view what,
                                 std::initializer_list<LogField> fields);

 private:
  void write(LogLevel level, std::string_view what, std::initializer_list<LogField> fields) const;
  std::atomic<LogLevel> level_;
  const Format format_;
};

}  // namespace kube
