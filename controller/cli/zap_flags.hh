// The logging flags of upstream's manager (trainer-contract 7.1), so that its Deployment's
// arguments work here. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/config/options.hh"

namespace trainer {

// Of --zap-log-level: debug, info, error or panic in any case, or how many levels of detail are
// wanted. By Kubernetes' conventions 2 is what one runs with every day, and debugging begins at 4.
// Answers a level of ours; nullopt for what upstream refuses.
std::optional<std::string> level_of_zap(std::string_view text);

// Of --zap-encoder: json or console.
std::optional<LogFormat> format_of_zap(std::string_view text);

}  // namespace trainer
