// A run tries these: everything in a long one, else a part that its seed draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/unit/fate/fields.hh"

namespace trainer::fate {

// Printed once. FATE_SEED repeats a run.
std::uint32_t seed();
// FATE_LONG tries each field with each runtime, and each name.
bool is_long();

inline constexpr std::size_t kRuntimesOfAField = 3;
inline constexpr std::size_t kNamesOfASubject = 12;

template <class T>
std::vector<const T*> some_of(const std::vector<T>& items, std::size_t most, Values& values) {
  std::vector<const T*> drawn;
  for (const T& item : items) drawn.push_back(&item);
  while (!is_long() && drawn.size() > most)
    drawn.erase(drawn.begin() + values.number(0, std::ssize(drawn) - 1));
  return drawn;
}

}  // namespace trainer::fate
