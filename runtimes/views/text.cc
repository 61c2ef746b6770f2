#include "runtimes/views/text.hh"

namespace trainer {

std::optional<std::int32_t> parse_unsigned(std::string_view text) {
  const auto value = kube::parse_number<std::int32_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::string count_of(std::int64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " " + std::string(noun);
  return count == 1 ? text : text + "s";
}

}  // namespace trainer
