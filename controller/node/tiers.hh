// Which tiers (Tier, pod_config.hh) a machine offers, found by trying.
#pragma once

#include <cstdint>
#include <string>

#include "controller/node/pod_config.hh"
#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace trainer::node {

struct TierProbe {
  std::string namespaces_problem;  // empty: they work
  std::string ports_problem;
  std::string network_problem = {};  // of tier 1: pods have no network of their own (network.hh)

  Tier best() const;
  // Why a tier cannot be had; empty: it can.
  std::string problem_of(Tier tier) const;
  friend bool operator==(const TierProbe&, const TierProbe&) = default;
};

kube::Json to_json(const TierProbe& probe);
TierProbe read_tier_probe(const kube::Json& value);

// "ok", or why 127.0.0.1 has not this port for us: what a process says that the probe starts.
std::string bind_loopback(std::uint16_t port);

// Starts processes, so it is for a process with one thread. Takes some milliseconds.
TierProbe probe_tiers();

}  // namespace trainer::node
