// A run has jobs, the results of their pods, and their users' actions meanwhile. All of it follows
// from the seed, and so does how each job must end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "tests/simulation/chance.hh"
#include "tests/simulation/cluster.hh"

namespace trainer::simulation {

// The state of a job when nothing happens any more.
enum class Ending { kComplete, kFailed, kRunning, kSuspended, kGone };
std::string_view name_of(Ending ending);

// A replicated job.
struct Part {
  std::string name;
  int jobs = 1;
  int pods = 1;
  int backoff_limit = 0;
  int flakes = 0;           // failures that its Job survives, of its first pod if not elastic
  bool is_awaited = false;  // another one waits for its completion
  bool is_endless = false;  // it runs until a client stops it, and nothing waits for it
};

// This says which pod fails an attempt.
struct Failure {
  std::size_t part = 0;
  int job = 0;
  int pod = 0;
};

// One TrainJob, or one JobSet that a user wrote by hand.
struct Lineage {
  kube::ObjectKey key;
  bool is_trainjob = true;
  kube::Json object;   // the object that its user sends
  kube::Json runtime;  // the runtime of a TrainJob
  std::vector<Part> parts;
  std::vector<Failure> failures;  // failures of the first attempts; the one after them succeeds
  bool is_hanging = false;        // it never ends by itself
  bool is_elastic = false;        // its last part has between these numbers of pods
  int least_nodes = 0;
  int most_nodes = 0;
  bool is_deleted = false;   // by its user, along the way
  bool is_expiring = false;  // removed after its end
  Ending ending = Ending::kComplete;
  std::string reason;  // the reason of a failure; "" if any reason is right
  int restarts = 0;
};

struct Script {
  std::vector<Lineage> lineages;

  static Script of(Chance& chance);
  // nullptr: the pod belongs to none.
  const Lineage* find(std::string_view name) const;
  Fate decide(Chance& chance, const kube::Json& pod, int failures) const;
};

}  // namespace trainer::simulation
