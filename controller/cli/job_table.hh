// The table of `trainer get`: jobs of all kinds as lines. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/registration/kind_registration.hh"

namespace trainer {

struct JobLine {
  std::string kind;  // "trainjob"; with the name after a slash it is an argument of other commands
  kube::ObjectKey key;
  std::string state;   // the phase
  std::string reason;  // CamelCase, for the state
  std::string message;
  std::string nodes;
  std::optional<std::int64_t> devices;
  std::string queue;
  std::optional<kube::Time> created;
  std::optional<kube::Time> started;
  bool is_waiting = false;  // it has not started
  bool is_finished = false;
  bool is_failed = false;
  friend bool operator==(const JobLine&, const JobLine&) = default;

  std::string name() const { return kind + "/" + key.name; }
  // Returns the seconds from its creation to its start, or until now if it waits. nullopt says that
  // the job does not show when it started.
  std::optional<std::int64_t> waited(kube::Time now) const;
  kube::Json to_json(kube::Time now) const;
};

JobLine read_job_line(const KindRegistration& kind, const kube::Json& object);

// The jobs that are shown, as far as they are known. A job that another one owns is a part of that:
// it has no line, and its devices are counted as those of its owner.
class JobLines {
 public:
  // `registry` outlives this.
  explicit JobLines(const Registry& registry) : registry_(registry) {}

  // Returns the line that has changed by it; nullptr if none has. A pointer is valid until the next
  // call.
  const JobLine* upsert(const KindRegistration& kind, const kube::Json& object);
  // Returns the line of a job that is gone; nullopt if it had none.
  std::optional<JobLine> remove(const std::string& uid);
  // Returns them with the unfinished first, then the newest.
  std::vector<JobLine> sorted() const;

 private:
  const JobLine* count_parts(const std::string& owner);

  const Registry& registry_;
  std::map<std::string, JobLine> lines_;  // by uid
  // The devices of parts, by the uid of their owner and by their own.
  std::map<std::string, std::map<std::string, std::int64_t>> parts_;
};

// These columns are printed.
struct JobColumns {
  bool has_namespace = false;
  bool has_reason = false;
};

// Prints lines in columns. Rows that come after first() have the columns of the first ones.
class JobTable {
 public:
  explicit JobTable(JobColumns columns) : columns_(columns) {}

  // Returns the head and the rows.
  std::string first(const std::vector<JobLine>& lines, kube::Time now);
  std::string row(const JobLine& line, kube::Time now) const;

 private:
  std::vector<std::string> head() const;
  std::vector<std::string> cells(const JobLine& line, kube::Time now) const;
  std::string padded(const std::vector<std::string>& cells) const;

  JobColumns columns_;
  std::vector<std::size_t> widths_;
};

}  // namespace trainer
