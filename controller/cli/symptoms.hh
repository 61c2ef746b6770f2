// `trainer why` recognises causes in the texts of an object's pods, events and last lines. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/cli/process_ends.hh"
#include "controller/registration/command_hooks.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer {

// These are the last lines that one pod printed.
struct PodOutput {
  std::string pod;
  std::string text;
};

// The API server says this about one object.
struct WhyFacts {
  std::vector<kube::Json> pods;
  std::vector<kube::Json> events;  // the events of the object, its Jobs, pods and claims
  bool are_events_cut = false;     // there are more in the namespace than were read
  std::vector<PodOutput> outputs;
  std::vector<ProcessEnd> process_ends;
  // Reads a pod's place in the job; may be null.
  std::optional<PodPlace> (*read_place)(const kube::ObjectMeta& pod) = nullptr;
};

struct Symptom {
  std::string name;   // the heading's anchor in docs/troubleshooting.md
  std::string cause;  // the text for the first line
  std::vector<std::string> evidence;
  std::string next_step;
};

// Returns the most likely cause first: a failure of one node comes before the timeouts of the other
// nodes, which follow from it. The result is empty for a job that is complete.
std::vector<Symptom> recognise(const ObjectState& state, const WhyFacts& facts, kube::Time now);

}  // namespace trainer
