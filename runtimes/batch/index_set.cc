#include "runtimes/batch/index_set.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "runtimes/views/text.hh"

namespace trainer::batch {

IndexSet IndexSet::parse(std::string_view text, std::int32_t limit) {
  IndexSet set;
  while (!text.empty()) {
    const std::string_view interval = text.substr(0, text.find(','));
    text.remove_prefix(std::min(interval.size() + 1, text.size()));
    const std::size_t dash = interval.find('-');
    const auto first = parse_unsigned(interval.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_unsigned(interval.substr(dash + 1));
    if (first && last && *first <= *last && *first < limit)
      set.add(*first, std::min(*last, limit - 1));
  }
  return set;
}

void IndexSet::add(std::int32_t first, std::int32_t last) {
  auto at = intervals_.upper_bound(first);
  if (at != intervals_.begin() && std::prev(at)->second >= first - 1) --at;
  while (at != intervals_.end() && at->first <= last + 1) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    at = intervals_.erase(at);
  }
  intervals_.emplace(first, last);
}

void IndexSet::add(const IndexSet& other) {
  for (const auto& [first, last] : other.intervals_) add(first, last);
}

bool IndexSet::has(std::int32_t index) const {
  const auto after = intervals_.upper_bound(index);
  return after != intervals_.begin() && std::prev(after)->second >= index;
}

std::int32_t IndexSet::total() const {
  std::int32_t count = 0;
  for (const auto& [first, last] : intervals_) count += last - first + 1;
  return count;
}

std::int32_t IndexSet::shared_with(const IndexSet& other) const {
  std::int32_t count = 0;
  auto mine = intervals_.begin();
  auto its = other.intervals_.begin();
  while (mine != intervals_.end() && its != other.intervals_.end()) {
    const std::int32_t overlap =
        std::min(mine->second, its->second) - std::max(mine->first, its->first) + 1;
    count += std::max(overlap, 0);
    if (mine->second < its->second)
      ++mine;
    else
      ++its;
  }
  return count;
}

std::vector<std::int32_t> IndexSet::first_missing(std::size_t count, std::int32_t limit) const {
  std::vector<std::int32_t> missing;
  auto next = intervals_.begin();
  for (std::int32_t index = 0; index < limit && missing.size() < count; ++index) {
    if (next != intervals_.end() && index == next->first)
      index = (next++)->second;
    else
      missing.push_back(index);
  }
  return missing;
}

std::string IndexSet::to_string() const {
  std::string text;
  for (const auto& [first, last] : intervals_) {
    if (!text.empty()) text += ',';
    text += fmt::to_string(first);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ',' : '-', last);
  }
  return text;
}

}  // namespace trainer::batch
