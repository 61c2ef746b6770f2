#include "controller/cli/zap_flags.hh"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

namespace trainer {
namespace {

constexpr std::int64_t kFirstDebugLevel = 4;

}  // namespace

std::optional<std::string> level_of_zap(std::string_view text) {
  std::string level(text);
  std::transform(level.begin(), level.end(), level.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (level == "debug" || level == "info" || level == "error") return level;
  if (level == "panic") return "error";
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number <= 0) {
    return std::nullopt;
  }
  return number >= kFirstDebugLevel ? "debug" : "info";
}

std::optional<LogFormat> format_of_zap(std::string_view text) {
  if (text == "json") return LogFormat::kJson;
  if (text == "console") return LogFormat::kText;
  return std::nullopt;
}

}  // namespace trainer
