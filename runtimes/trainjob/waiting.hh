// Why pods wait: the one cause that most of them share. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/trainjob/observed.hh"

namespace trainer {

struct WaitingCause {
  std::string
      reason;  // CamelCase: Unschedulable, GangNotReady, ImagePullFailed, VolumeMissing, ...
  std::string message;  // "2 pods: 0/3 nodes are available: ..."
};

// The cause that holds back the most pods; of equal counts the one that comes first by name.
// nullopt where no pod says why.
std::optional<WaitingCause> dominant_cause(const std::vector<const PodView*>& waiting);

// From the text of an event about a stuck job, "REASON: MESSAGE" ("FailedMount: MountVolume.SetUp
// failed ..."). nullopt for "".
std::optional<WaitingCause> cause_of_event(std::string_view event);

// What an owner can do about a cause, one sentence; "" where there is nothing to advise.
std::string advice_for(std::string_view reason);

}  // namespace trainer
