// Switches for what is not finished upstream either. Names, stages and defaults are upstream's
// (trainer-contract 7.3, jobset-contract 1.9).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "runtimes/jobset/gates.hh"

namespace trainer {

struct FeatureGates {
  bool TrainJobStatus = false;  // pods report progress to the status server
  bool InPlaceRestart = false;  // JobSet: restart containers instead of Jobs
  bool RestartJob = false;      // JobSet: failure policy actions that restart one Job
  bool ElasticJobSet = false;   // JobSet: parallelism and completions may change
  friend bool operator==(const FeatureGates&, const FeatureGates&) = default;
};

using GateSettings = std::map<std::string, bool, std::less<>>;

// "A=true,B=false", spaces allowed. Errors (kInvalid) name the entry.
kube::Result<GateSettings> parse_gate_flag(std::string_view text);

// The file's settings, then the flag's over them. A gate that is named itself wins over AllAlpha
// and AllBeta, wherever it is named. Errors (kInvalid): a gate that does not exist, with the ones
// that do.
kube::Result<FeatureGates> resolve_gates(const GateSettings& file, const GateSettings& flag);

std::vector<std::string> gate_names();

// Those that the JobSet expander and its admission ask for.
jobset::Gates jobset_gates(const FeatureGates& gates);

}  // namespace trainer
