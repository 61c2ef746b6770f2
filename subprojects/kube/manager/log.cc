#include "kube/manager/log.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>

#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"
#include "kube/model/visible_text.hh"

namespace kube {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warn", "info", "debug"};

// Returns the JSON so that a terminal takes no part of it for a command: JSON itself escapes only
// what is below U+0020, and no other hidden character.
std::string without_hidden(std::string_view json) {
  std::string safe;
  while (!json.empty()) {
    const Character next = first_character(json);
    const auto code = static_cast<std::uint32_t>(next.code);
    if (!next.is_hidden)
      safe += json.substr(0, next.bytes);
    else if (code < 0x10000)
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}", code);
    else  // a pair of surrogates
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}\\u{:04x}",
                     0xd800 + ((code - 0x10000) >> 10U), 0xdc00 + ((code - 0x10000) & 0x3ffU));
    json.remove_prefix(next.bytes);
  }
  return safe;
}

// A value is quoted as JSON unless it is one plain word.
std::string quote(std::string_view value) {
  const auto is_plain = [](char c) {
    return c > ' ' && c < '\x7f' && c != '=' && c != '"' && c != '\\';
  };
  const bool is_word = !value.empty() && std::ranges::all_of(value, is_plain);
  return is_word ? std::string(value) : without_hidden(print_json(Json(value)));
}

}  // namespace

std::string_view name_of(LogLevel level) {
  return kNames[static_cast<std::size_t>(level)];
}

std::optional<LogLevel> parse_log_level(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<LogLevel>(at - kNames.begin());
}

std::string Log::format_line(Format format, LogLevel level, std::string_view what,
                             std::initializer_list<LogField> fields) {
  if (format == Format::kJson) {
    Json line = Json::object({{"level", name_of(level)}, {"msg", what}});
    for (const auto& field : fields) line.set(field.key, field.value);
    return without_hidden(print_json(line));
  }
  std::string line = std::string(name_of(level)) + " " + std::string(what);
  for (const auto& field : fields)
    line.append(" ").append(field.key).append("=").append(quote(field.value));
  return line;
}

void Log::write(LogLevel level, std::string_view what,
                std::initializer_list<LogField> fields) const {
  if (level > level_.load(std::memory_order_relaxed)) return;
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  const std::string time = kube::Time(now).to_micro_string();
  std::string line = format_line(format_, level, what, fields);
  if (format_ == Format::kJson) {
    line.insert(1, "\"time\":\"" + time + "\",");
  } else {
    line.insert(0, time + " ");
  }
  line += "\n";
  // A log that cannot be written must not stop the controller.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace kube
