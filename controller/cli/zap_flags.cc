#include "controller/cli/zap_flags.hh"

#include <cstdint>

#include "kube/model/text.hh"

namespace trainer {

std::optional<std::string> level_of_zap(std::string_view text) {
  const std::string level = kube::to_lower(text);
  if (level == "debug" || level == "info" || level == "error") return level;
  if (level == "panic") return "error";
  const auto number = kube::parse_number<std::int64_t>(text).value_or(0);
  if (number <= 0) return std::nullopt;
  return number >= 4 ? "debug" : "info";
}

std::optional<LogFormat> format_of_zap(std::string_view text) {
  if (text == "json") return LogFormat::kJson;
  if (text == "console") return LogFormat::kText;
  return std::nullopt;
}

}  // namespace trainer
