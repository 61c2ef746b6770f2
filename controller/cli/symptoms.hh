// Causes that `trainer why` recognises in what an object's pods, events and last lines say. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/registration/command_hooks.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer {

// The last lines that one pod printed.
struct PodOutput {
  std::string pod;
  std::string text;
};

// What the API server says about one object.
struct WhyFacts {
  std::vector<kube::Json> pods;
  std::vector<kube::Json> events;  // of the object, its Jobs, pods and claims
  bool are_events_cut = false;     // there are more in the namespace than were read
  std::vector<PodOutput> outputs;
  // A pod's place in the job; may be null.
  std::optional<PodPlace> (*read_place)(const kube::ObjectMeta& pod) = nullptr;
};

struct Symptom {
  std::string name;   // the heading's anchor in docs/troubleshooting.md
  std::string cause;  // for the first line
  std::vector<std::string> evidence;
  std::string next_step;
};

// Most likely cause first: a failure of one node comes before the timeouts of the other nodes,
// which follow from it. Empty for a job that is complete.
std::vector<Symptom> recognise(const ObjectState& state, const WhyFacts& facts, kube::Time now);

// The symptoms that lines of output show, in the same order. `outputs` ends with the failure that
// the object's status keeps, if any.
std::vector<Symptom> recognise_lines(const WhyFacts& facts, const std::vector<PodOutput>& outputs);

// The symptom of lines that has this name, known by other evidence; the name must exist.
Symptom symptom_of_rule(std::string_view name, std::string evidence);

// Whether nodes show this symptom only because another node has failed, or waits.
bool is_consequence(const Symptom& symptom);

// The first error of a Python script, in the output of a pod that does not only show a
// consequence.
std::optional<Symptom> recognise_script_error(const std::vector<PodOutput>& outputs);

}  // namespace trainer
