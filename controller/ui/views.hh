// These are the pages: values that say what is shown, and functions that write them as HTML. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/registration/command_hooks.hh"
#include "controller/ui/html.hh"
#include "controller/ui/progress.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer::ui {

// Names one job: "trainjobs.v1alpha1.trainer.kubeflow.org" and its key.
struct JobAddress {
  std::string resource;
  kube::ObjectKey key;
};

// This is a line of the list.
struct JobRow {
  JobAddress address;
  std::string kind;
  std::string phase;
  std::string reason;
  std::string nodes;
  std::string queue;
  std::optional<std::int64_t> percent;
  std::optional<kube::Time> created;
  bool is_finished = false;
  bool is_failed = false;
};

struct JobList {
  std::string scope;  // "namespace default"
  std::string search;
  std::vector<JobRow> rows;        // unfinished jobs first, then the newest first
  std::size_t found = 0;           // `rows` is the beginning of this many
  std::vector<std::string> notes;  // sentences about what could not be read

  // Sorts the rows, keeps those that have the text of `search` and at most `limit` of them.
  void arrange(std::size_t limit);
};

struct PodRow {
  std::string place;  // "node-0"
  std::string name;
  std::string node;
  std::string state;
  std::int64_t restarts = 0;
};

struct JobPage {
  JobRow job;
  ObjectState state;
  std::string cause;
  kube::StringMap annotations;
  ProgressReport report;
  Curves curves;
  std::vector<PodRow> pods;
  std::size_t more_pods = 0;
  std::string chosen;  // the pod whose log is shown; "" for several
  std::vector<std::string> log;
  std::vector<std::string> notes;
};

void write_list(Html& html, const JobList& list, kube::Time now);
void write_job(Html& html, const JobPage& page, kube::Time now);
// Writes what is shown instead of a page.
void write_sentence(Html& html, std::string_view sentence);

// Returns a whole document with this title, whose changing part `write` writes. `search` is in the
// field of the form.
std::string document(std::string_view title, std::string_view search,
                     const std::function<void(Html&)>& write);

}  // namespace trainer::ui
