// `trainer why` recognises the causes of this table by words. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/cli/symptoms.hh"

namespace trainer {

// The words of a rule are looked for in this source.
enum class Source {
  kPull,      // the reason why an image is not pulled
  kMessage,   // a message of the object, its events, or a condition of a pod
  kKilled,    // a container that the kernel ended because of its memory
  kEvicted,   // the message of a pod that was evicted
  kStatus,    // the evidence in the object's status
  kBusError,  // a container that was ended by SIGBUS
  kOutput,    // the last lines that a pod printed
};

struct Clue {
  Source source;
  std::string text;
  std::string subject = {};  // the object that the cause names
  std::string prefix = {};   // the origin of the text in the evidence
};

// Returns the symptoms in the order of the table. Other words for a symptom that is already found
// do not count; those of output do, since they distinguish causes.
std::vector<Symptom> match_rules(const std::vector<Clue>& clues, bool is_script_of_sdk);

// Returns whether nodes show this symptom only because another node has failed, or waits.
bool is_consequence(const Symptom& symptom);

// Returns the first error of a Python script, in output that does not only show a consequence.
std::optional<Symptom> recognise_script_error(const std::vector<Clue>& outputs);

}  // namespace trainer
