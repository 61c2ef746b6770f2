// Creation of Jobs, in order: jobset-contract 2.2 and 3.4.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// So that a JobSet with a million replicas, or with a megabyte of template, neither takes the
// memory of all its Jobs at once nor holds up the others. The first is far more than is created
// side by side; the second is some milliseconds of copying.
constexpr std::size_t kMostCreations = 256;
constexpr std::size_t kMostWeight = 100'000;

// What copying costs: values, and text by the cache line.
std::size_t weight_of(const kube::Json& value) {
  std::size_t weight = 1;
  if (value.is_string()) return weight + value.as_string().size() / 64;
  if (value.is_array()) {
    for (const kube::Json& item : value.as_array()) weight += weight_of(item);
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.as_object()) weight += weight_of(member);
  }
  return weight;
}

std::optional<std::int32_t> job_attempt(const Pass& pass, const Wave& wave, std::int32_t index) {
  if (!pass.observed.gates.restart_job) return std::nullopt;
  const auto& restarts = wave.counters.jobRestarts;
  const auto at = static_cast<std::size_t>(index);
  return at < restarts.size() ? restarts[at] : 0;
}

Action creation(const Pass& pass, kube::Json job) {
  Action action;
  action.verb = Action::Verb::kCreate;
  action.resource = kJobs;
  action.key = {pass.jobset.metadata.ns, std::string(job["metadata"].get_string("name"))};
  action.body = std::move(job);
  action.owner_uid = pass.jobset.metadata.uid;
  action.stage = pass.job_stage;
  action.failure_reason = "JobCreationFailed";
  return action;
}

// Creates what is missing of one wave. Any Job of that name, of whatever attempt, is in the way.
class Creator {
 public:
  explicit Creator(Pass& pass) : pass_(pass) {}

  void create_missing(std::size_t position) {
    const Wave& wave = pass_.waves[position];
    if (static_cast<std::int32_t>(wave.taken.size()) + wave.remembered >= wave.replicas) return;
    if (!layout_) layout_ = Layout::of(pass_.jobset);
    const JobFactory factory(pass_.jobset, *layout_, position, pass_.observed.is_of_trainjob);
    const std::size_t weight = weight_of(wave.spec->template_);
    auto taken = wave.taken.begin();
    for (std::int32_t index = 0; index < wave.replicas; ++index) {
      while (taken != wave.taken.end() && *taken < index) ++taken;
      if (taken != wave.taken.end() && *taken == index) continue;
      if (std::binary_search(wave.done.begin(), wave.done.end(), index)) continue;
      if (created_ == kMostCreations || weight_ > kMostWeight) {
        pass_.plan.requeue_after = std::chrono::milliseconds(0);
        return;
      }
      ++created_;
      weight_ += weight;
      pass_.plan.actions.push_back(
          creation(pass_, factory.make(index, job_attempt(pass_, wave, index))));
    }
  }

 private:
  Pass& pass_;
  std::optional<Layout> layout_;
  std::size_t created_ = 0;
  std::size_t weight_ = 0;
};

bool waits_for_previous(const Pass& pass) {
  const auto& policy = pass.jobset.spec.failurePolicy;
  return policy && policy->restartStrategy.value_or("Recreate") == "BlockingRecreate" &&
         !pass.jobs.previous.empty();
}

}  // namespace

void start_in_order(Pass& pass) {
  pass.set_condition(kStartupInProgress, true, "InOrderStartupPolicyInProgress",
                     "in order startup policy is in progress");
}

void end_in_order(Pass& pass) {
  pass.set_condition(kStartupCompleted, true, "InOrderStartupPolicyCompleted",
                     "in order startup policy has completed");
}

void create_jobs(Pass& pass) {
  Creator creator(pass);
  const bool is_blocked = waits_for_previous(pass);
  for (std::size_t i = 0; i < pass.waves.size(); ++i) {
    const Wave& wave = pass.waves[i];
    if (!are_dependencies_met(pass, wave)) continue;
    if (pass.is_in_order() && wave.has_started()) continue;
    if (!is_blocked) creator.create_missing(i);
    if (pass.is_in_order()) {
      start_in_order(pass);
      return;
    }
  }
  if (pass.is_in_order()) end_in_order(pass);
}

}  // namespace trainer::jobset
