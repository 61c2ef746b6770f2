// A machine offers these tiers (Tier, pod_config.hh); they are found by trying.
#pragma once

#include <cstdint>
#include <string>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

struct TierProbe {
  std::string namespaces_problem;  // empty: they work
  std::string ports_problem;
  // A problem of tier 1: pods have no network of their own (network.hh).
  std::string network_problem = {};

  Tier best() const;
  // Returns why a tier is not offered; empty: it is.
  std::string problem_of(Tier tier) const;
  friend bool operator==(const TierProbe&, const TierProbe&) = default;
};

kube::Json to_json(const TierProbe& probe);
TierProbe read_tier_probe(const kube::Json& value);

// Returns "ok", or why this process cannot have this port of 127.0.0.1; the process that the probe
// starts prints it.
std::string bind_loopback(std::uint16_t port);

// Starts processes, so it is for a process with one thread. It takes some milliseconds.
TierProbe probe_tiers();

}  // namespace trainer::node
