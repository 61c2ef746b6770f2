#include "tests/unit/fate/draw.hh"

#include <cstdlib>
#include <iostream>
#include <random>

namespace trainer::fate {

std::uint32_t seed() {
  static const std::uint32_t drawn = [] {
    const char* given = std::getenv("FATE_SEED");
    const auto value = given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                             : std::random_device()();
    std::cout << "FATE_SEED=" << value << " repeats this run\n";
    return value;
  }();
  return drawn;
}

bool is_long() {
  return std::getenv("FATE_LONG") != nullptr;
}

}  // namespace trainer::fate
