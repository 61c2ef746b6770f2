// The report says what an object is doing or waiting for, why, and what its owner can do about it.
// Pure.
#pragma once

#include <string>

#include "controller/cli/symptoms.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer {

// `evidence` has lines that show the cause: the first failure, pods with problems, warnings. No
// text has control characters except line ends and tabs.
struct WhyReport : ObjectState {
  std::string cause;  // the likeliest recognised one, for the first line; "" without one
  std::string kind;
  std::string job;  // "team-a/llama"

  kube::Json to_json() const;
  std::string to_text() const;
};

// Returns when it was seen last; nullopt if it has no time.
std::optional<kube::Time> time_of_event(const kube::Json& event);

// `state` is that of the object. The report has five pods and five events at most, the newest
// events first.
WhyReport why(const kube::Resource& resource, const kube::ObjectKey& key, ObjectState state,
              const WhyFacts& facts, kube::Time now);

}  // namespace trainer
