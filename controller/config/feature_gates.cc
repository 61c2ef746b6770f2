#include "controller/config/feature_gates.hh"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string.hpp>

namespace trainer {
namespace {

enum class Stage { kAlpha, kBeta };

struct Gate {
  std::string_view name;
  Stage stage;
  bool FeatureGates::*member;
};

constexpr std::array kGates = {
    Gate{"TrainJobStatus", Stage::kAlpha, &FeatureGates::TrainJobStatus},
    Gate{"InPlaceRestart", Stage::kAlpha, &FeatureGates::InPlaceRestart},
    Gate{"RestartJob", Stage::kAlpha, &FeatureGates::RestartJob},
    Gate{"ElasticJobSet", Stage::kAlpha, &FeatureGates::ElasticJobSet},
};

constexpr std::string_view kAllAlpha = "AllAlpha";
constexpr std::string_view kAllBeta = "AllBeta";

const Gate* find_gate(std::string_view name) {
  for (const Gate& gate : kGates) {
    if (gate.name == name) return &gate;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> gate_names() {
  std::vector<std::string> names;
  for (const Gate& gate : kGates) names.emplace_back(gate.name);
  names.emplace_back(kAllAlpha);
  names.emplace_back(kAllBeta);
  return names;
}

kube::Result<GateSettings> parse_gate_flag(std::string_view text) {
  GateSettings settings;
  std::vector<std::string> entries;
  boost::algorithm::split(entries, text, boost::algorithm::is_any_of(","));
  for (std::string& entry : entries) {
    boost::algorithm::trim(entry);
    if (entry.empty()) continue;
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string name = boost::algorithm::trim_copy(entry.substr(0, equals));
    const std::string value =
        boost::algorithm::trim_copy(entry.substr(std::min(equals + 1, entry.size())));
    const bool is_true = value == "true" || value == "True" || value == "1";
    const bool is_false = value == "false" || value == "False" || value == "0";
    if (name.empty() || (!is_true && !is_false)) {
      return kube::fail(kube::ErrorCode::kInvalid,
                        "--feature-gates: \"{}\" is no setting: write NAME=true or NAME=false",
                        entry);
    }
    settings[name] = is_true;
  }
  return settings;
}

kube::Result<FeatureGates> resolve_gates(const GateSettings& file, const GateSettings& flag) {
  GateSettings merged = file;
  for (const auto& [name, value] : flag) merged[name] = value;

  FeatureGates gates;
  for (const auto& [group, stage] :
       {std::pair(kAllAlpha, Stage::kAlpha), {kAllBeta, Stage::kBeta}}) {
    const auto at = merged.find(group);
    if (at == merged.end()) continue;
    for (const Gate& gate : kGates) {
      if (gate.stage == stage) gates.*gate.member = at->second;
    }
  }
  for (const auto& [name, value] : merged) {
    if (name == kAllAlpha || name == kAllBeta) continue;
    const Gate* gate = find_gate(name);
    if (gate == nullptr) {
      return kube::fail(kube::ErrorCode::kInvalid,
                        "featureGates[{}]: there is no such feature gate: choose from {}", name,
                        fmt::join(gate_names(), ", "));
    }
    gates.*gate->member = value;
  }
  return gates;
}

jobset::Gates jobset_gates(const FeatureGates& gates) {
  jobset::Gates result;
  result.in_place_restart = gates.InPlaceRestart;
  result.restart_job = gates.RestartJob;
  result.elastic_jobset = gates.ElasticJobSet;
  return result;
}

}  // namespace trainer
