// What an object is doing or waiting for, why, and what its owner can do about it. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/registration/command_hooks.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer {

// `evidence` has lines: the first failure, pods with problems, warnings. No text has control
// characters, but line ends and tabs.
struct WhyReport : ObjectState {
  std::string kind;
  std::string job;  // "team-a/llama"

  kube::Json to_json() const;
  std::string to_text() const;
};

// `state`: of the object. `pods` and `events` of it, as the API server lists them. The report has
// five pods and five events at most, the newest events first.
WhyReport why(const kube::Resource& resource, const kube::ObjectKey& key, ObjectState state,
              const std::vector<kube::Json>& pods, const std::vector<kube::Json>& events,
              kube::Time now);

}  // namespace trainer
