#include "runtimes/views/text.hh"

#include "kube/model/visible_text.hh"

namespace trainer {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

std::string_view tail_of(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t start = text.size() - limit;
  while (start < text.size() && is_continuation(text[start])) ++start;
  return text.substr(start);
}

}  // namespace

std::string keep_head(std::string_view text, std::size_t limit) {
  const std::string_view head = kube::head_of(text, limit);
  if (kube::is_plain_line(head)) return std::string(head);
  return std::string(kube::head_of(kube::visible_text(std::string(head)), limit));
}

std::string keep_tail(std::string_view text, std::size_t limit) {
  const std::string_view tail = tail_of(text, limit);
  if (kube::is_plain_line(tail)) return std::string(tail);
  return std::string(tail_of(kube::visible_text(std::string(tail)), limit));
}

std::optional<std::int32_t> parse_unsigned(std::string_view text) {
  const auto value = kube::parse_number<std::int32_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::string count_of(std::int64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " " + std::string(noun);
  return count == 1 ? text : text + "s";
}

}  // namespace trainer
