// These are the feature gates. Names, stages, defaults: pkg/features of Kubeflow Trainer and of
// JobSet.
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

// Parses "A=true,B=false", spaces allowed. Errors (kInvalid) name the entry.
kube::Result<GateSettings> parse_gate_flag(std::string_view text);

// Merges the file's settings, overridden by the flag's. A setting of one gate wins over AllAlpha
// and AllBeta, in the file and in the flag. Errors (kInvalid): an unknown gate, with all known
// ones.
kube::Result<FeatureGates> resolve_gates(const GateSettings& file, const GateSettings& flag);

std::vector<std::string> gate_names();

// Returns the gates that the JobSet controller and its admission use.
jobset::Gates jobset_gates(const FeatureGates& gates);

}  // namespace trainer
