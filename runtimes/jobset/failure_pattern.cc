#include "runtimes/jobset/failure_pattern.hh"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "runtimes/views/text.hh"

namespace trainer::jobset {
namespace {

constexpr std::size_t kMaxEntries = 4;
// A byte costs this in addition to the instructions, since also a small program makes many states.
constexpr std::size_t kCostOfState = 200;
constexpr std::size_t kQuotedBytes = 64;

kube::FieldError refuse(std::string path, const std::string& pattern) {
  const bool is_long = pattern.size() > kQuotedBytes;
  return kube::invalid(
      std::move(path), is_long ? keep_head(pattern, kQuotedBytes) + "..." : pattern,
      "finds nothing: it is no expression of RE2, or exceeds a failure policy's {} patterns of {} "
      "bytes in all, which compile to {} instructions in all and {} KiB each; correct it, or have "
      "fewer or shorter ones",
      FailurePatterns::kMaxPatterns, FailurePatterns::kMaxBytes, FailurePatterns::kMaxInstructions,
      FailurePatterns::kMaxMemory >> 10);
}

}  // namespace

FailurePatterns::FailurePatterns(const FailurePolicy& policy, std::string_view path)
    : rules_(policy.rules.size()) {
  for (std::size_t rule = 0; rule < policy.rules.size(); ++rule) {
    const auto& patterns = policy.rules[rule].onJobFailureMessagePatterns;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (add(rule, patterns[i]) || refusal_) continue;
      refusal_ = refuse(fmt::format("{}.rules[{}].onJobFailureMessagePatterns[{}]", path, rule, i),
                        patterns[i]);
    }
  }
}
FailurePatterns::FailurePatterns(FailurePatterns&&) noexcept = default;
FailurePatterns::~FailurePatterns() = default;

bool FailurePatterns::add(std::size_t rule, const std::string& pattern) {
  bytes_ += pattern.size();
  if (patterns_ == kMaxPatterns || bytes_ > kMaxBytes) return false;
  ++patterns_;
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kMaxMemory);
  options.set_never_capture(true);
  auto compiled = std::make_unique<RE2>(pattern, options);
  if (!compiled->ok()) return false;
  const auto size = static_cast<std::size_t>(compiled->ProgramSize());
  if (instructions_ + size > kMaxInstructions) return false;
  instructions_ += size;
  rules_[rule].push_back(std::move(compiled));
  return true;
}

bool FailurePatterns::finds_any(std::size_t rule, std::string_view text) const {
  const std::string_view searched = text.substr(0, kSearchedBytes);
  return std::any_of(rules_[rule].begin(), rules_[rule].end(), [searched](const auto& pattern) {
    return RE2::PartialMatch(re2::StringPiece(searched.data(), searched.size()), *pattern);
  });
}

std::size_t FailurePatterns::cost(std::size_t bytes) const {
  return (instructions_ + patterns_ * kCostOfState) * std::min(bytes, kSearchedBytes);
}

const FailurePatterns& FailurePatternCache::of(const JobSet& jobset) {
  const kube::ObjectMeta& meta = jobset.metadata;
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&meta](const Entry& entry) {
    return entry.uid == meta.uid && entry.generation == meta.generation;
  });
  if (known != entries_.end()) return known->patterns;
  if (entries_.size() == kMaxEntries) entries_.pop_back();
  entries_.push_front({meta.uid, meta.generation, FailurePatterns(*jobset.spec.failurePolicy)});
  return entries_.front().patterns;
}

}  // namespace trainer::jobset
