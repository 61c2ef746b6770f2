// The policies that a job or its runtime can ask for in case of a hang (docs/users/hangs.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainer::stall {

// By this annotation a job or its runtime asks for the reporter.
inline constexpr std::string_view kDetectHangsKey = "trainer.kubeflow.org/detect-hangs";

enum class Policy : std::uint8_t { kWarn, kRestart, kFail };

// Returns nullopt for a text that names no policy.
constexpr std::optional<Policy> parse_policy(std::string_view text) {
  if (text == "Warn") return Policy::kWarn;
  if (text == "Restart") return Policy::kRestart;
  if (text == "Fail") return Policy::kFail;
  return std::nullopt;
}

}  // namespace trainer::stall
