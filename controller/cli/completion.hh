// Command lines are completed by the parser's own description of them: a new subcommand or option
// needs no edit here. Pure.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/commands.hh"

namespace trainer {

struct Candidate {
  std::string word;
  std::string description;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// Either the candidates are known, or it is said what else has to be looked up.
struct Completion {
  enum class Source { kKnown, kFiles, kDirectories, kJobs, kNamespaces };
  Source source = Source::kKnown;
  std::vector<Candidate> candidates;  // those that begin with `begun`
  std::string begun;                  // the part of the word or value that is typed already
  std::string before;                 // "--output=": in front of a value in the same word
  std::string kind;                   // with kJobs: only objects of this kind, by their names
  // The options for it that the command line has so far.
  ClusterOptions cluster;
  bool is_local = false;  // it is a subcommand of `trainer local`
  std::string state;      // the directory of local mode; "": the default
};

// The last word is the one to complete; it may be empty. bash makes three words of "--output=json",
// which is understood.
Completion complete_words(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace trainer
