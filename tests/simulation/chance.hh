// Every choice of a simulation, from one seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "kube/client/clock.hh"

namespace trainer::simulation {

// SplitMix64. Parts of a simulation that must not disturb each other fork a source of their own.
class Chance final : public kube::Random {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019) {}

  std::uint64_t next() override {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  Chance fork() { return Chance(next()); }

  // Uniform in [0, bound).
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  // Uniform, both ends included.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool percent(int chance) { return below(100) < chance; }
  std::chrono::milliseconds wait(int low_ms, int high_ms) {
    return std::chrono::milliseconds(between(low_ms, high_ms));
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace trainer::simulation
