// This class searches a failure message for patterns that a user wrote. It uses RE2, since then no
// pattern takes more than linear time, and since the field's documentation promises its syntax.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/jobset.hh"
#include "kube/model/field_error.hh"

namespace re2 {
class RE2;
}

namespace trainer::jobset {

// This holds the compiled patterns of one failure policy. A pattern that exceeds the limits below,
// or is no regular expression, finds nothing.
class FailurePatterns {
 public:
  // These limits hold for one policy: patterns, their bytes in all, and what they compile to in
  // all. The second bounds the time to compile them (50 ms), the last the time to search one
  // message (30 ms).
  static constexpr std::size_t kMaxPatterns = 50;
  static constexpr std::size_t kMaxBytes = 2'048;
  static constexpr std::size_t kMaxInstructions = 10'000;
  // This limit holds for each pattern, including what it caches while it searches.
  static constexpr std::int64_t kMaxMemory = 64 << 10;
  // Only this much of a message is searched, from its start; the Job controller's messages are
  // shorter.
  static constexpr std::size_t kSearchedBytes = 1'024;

  // `path` is the policy's, for refusal().
  explicit FailurePatterns(const FailurePolicy& policy,
                           std::string_view path = "spec.failurePolicy");
  FailurePatterns(FailurePatterns&&) noexcept;
  ~FailurePatterns();

  // Returns whether a pattern of the rule at this index is found anywhere in the text.
  bool finds_any(std::size_t rule, std::string_view text) const;
  // Returns the highest cost of searching a text of this length for all patterns, in about
  // nanoseconds.
  std::size_t cost(std::size_t bytes) const;
  // Returns the first pattern that exceeds a limit or is no expression.
  const std::optional<kube::FieldError>& refusal() const { return refusal_; }

 private:
  bool add(std::size_t rule, const std::string& pattern);

  std::vector<std::vector<std::unique_ptr<re2::RE2>>> rules_;
  std::size_t patterns_ = 0;
  std::size_t bytes_ = 0;
  std::size_t instructions_ = 0;
  std::optional<kube::FieldError> refusal_;
};

// This cache has the compiled patterns of the JobSets that were planned last, by uid and
// generation. The result of plan() does not depend on it. Concurrency: one thread.
class FailurePatternCache {
 public:
  // The result is valid until the next call.
  const FailurePatterns& of(const JobSet& jobset);

 private:
  struct Entry {
    std::string uid;
    std::int64_t generation = 0;
    FailurePatterns patterns;
  };
  std::deque<Entry> entries_;  // newest first
};

}  // namespace trainer::jobset
