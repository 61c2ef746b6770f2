// These are the logging flags of upstream's manager (controller-runtime, pkg/log/zap), so that the
// arguments of its Deployment work here. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/config/options.hh"

namespace trainer {

// Reads --zap-log-level: debug, info, error or panic in any case, or a verbosity. By Kubernetes'
// conventions 2 is the usual verbosity, and debugging begins at 4. Returns a value of --log-level;
// nullopt for a text that upstream refuses.
std::optional<std::string> level_of_zap(std::string_view text);

// Reads --zap-encoder: json or console.
std::optional<LogFormat> format_of_zap(std::string_view text);

}  // namespace trainer
