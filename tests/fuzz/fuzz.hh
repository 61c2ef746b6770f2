// The targets share this. Each defines LLVMFuzzerTestOneInput and checks its code against a law, so
// that wrong answers are found too, and not only crashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// Stops the run, with the texts that break the law, unless it holds.
inline void hold(bool law, std::string_view name, std::string_view left = {},
                 std::string_view right = {}) {
  if (law) return;
  std::fprintf(stderr, "broken: %s\n  %s\n  %s\n", std::string(name).c_str(),
               std::string(left).c_str(), std::string(right).c_str());
  std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
