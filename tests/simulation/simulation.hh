// One run has a seed as input, and a verdict as result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainer::simulation {

struct Verdict {
  std::optional<std::string> violation;
  // The digest of everything that happened: equal seeds have equal digests.
  std::uint64_t digest = 0;
  int crashes = 0;
  int writes = 0;
  std::int64_t virtual_seconds = 0;
};

// With `is_traced` everything that happens is written to standard error.
Verdict simulate(std::uint64_t seed, bool is_traced);

}  // namespace trainer::simulation
