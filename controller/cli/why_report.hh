// What a TrainJob is doing or waiting for, why, and what its owner can do about it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/trainjob.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer {

struct WhyReport {
  std::string job;  // "team-a/llama"
  std::string phase;
  std::string reason;
  std::string message;
  std::vector<std::string> evidence;  // lines: the first failure, pods with problems, warnings
  std::string next_step;              // "" when there is nothing to do

  kube::Json to_json() const;
  std::string to_text() const;
};

// `pods` and `events` of the job, as the API server lists them. The report has five pods and five
// events at most, the newest events first. `program`: the command's name in advice.
WhyReport why(const TrainJob& job, const std::vector<kube::Json>& pods,
              const std::vector<kube::Json>& events, kube::Time now,
              std::string_view program = "trainer");

}  // namespace trainer
