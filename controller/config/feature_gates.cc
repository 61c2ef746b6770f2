#include "controller/config/feature_gates.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

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

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
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
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view entry = trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (entry.empty()) continue;
    const auto equals = entry.find('=');
    const std::string_view name = trim(entry.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : trim(entry.substr(equals + 1));
    const bool is_true = value == "true" || value == "True" || value == "1";
    const bool is_false = value == "false" || value == "False" || value == "0";
    if (name.empty() || (!is_true && !is_false)) {
      return kube::fail(
          kube::ErrorCode::kInvalid,
          fmt::format("--feature-gates: \"{}\" is no setting: write NAME=true or NAME=false",
                      entry));
    }
    settings[std::string(name)] = is_true;
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
      return kube::fail(
          kube::ErrorCode::kInvalid,
          fmt::format("featureGates[{}]: there is no such feature gate: choose from {}", name,
                      fmt::join(gate_names(), ", ")));
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
