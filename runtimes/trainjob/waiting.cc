#include "runtimes/trainjob/waiting.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtimes/views/text.hh"

namespace trainer {
namespace {

std::string with_reported(std::string_view reported, std::string_view message) {
  if (message.empty()) return std::string(reported);
  return std::string(message);
}

}  // namespace

std::optional<WaitingCause> dominant_cause(const std::vector<const PodView*>& waiting) {
  std::map<std::pair<std::string_view, std::string_view>, int> counts;
  for (const PodView* pod : waiting) ++counts[{pod->waiting_reason, pod->waiting_message}];
  if (counts.empty()) return std::nullopt;
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto& [words, count] = *most;
  return WaitingCause{
      std::string(reason_of_report(words.first, words.second)),
      fmt::format("{}: {}", count_of(count, "pod"), with_reported(words.first, words.second))};
}

}  // namespace trainer
