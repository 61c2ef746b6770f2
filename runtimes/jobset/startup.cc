// Jobs are created here, in order (JobSet, pkg/controllers/startup_policy.go).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

// One reconcile creates at most this much, so that a JobSet with a million replicas, or with a
// template of a megabyte, neither has all its Jobs in memory at once nor delays other objects. The
// first limit is far more Jobs than are created at a time; the second is some milliseconds of
// copying.
constexpr std::size_t kMaxCreations = 256;
constexpr std::size_t kMaxWeight = 100'000;

std::optional<std::int32_t> job_attempt(const JobSetContext& context,
                                        const ReplicatedJobState& rjob, std::int32_t index) {
  if (!context.observed.gates.restart_job) return std::nullopt;
  const auto& restarts = rjob.counters.jobRestarts;
  const auto at = static_cast<std::size_t>(index);
  return at < restarts.size() ? restarts[at] : 0;
}

kube::Action creation(const JobSetContext& context, kube::Json job) {
  std::string name(job["metadata"].get_string("name"));
  // The event of upstream's controller has this text (JobSet,
  // pkg/controllers/jobset_controller.go).
  std::string description = fmt::format("job \"{}\" creation failed with error", name);
  return {.resource = kube::kJobs,
          .key = {context.jobset.metadata.ns, std::move(name)},
          .body = std::move(job),
          .owner_uid = context.jobset.metadata.uid,
          .stage = context.job_stage,
          .failure_reason = std::string(kJobCreationFailed),
          .description = std::move(description)};
}

// Creates the missing Jobs of one replicated job. An existing Job of the same name blocks it,
// whatever its attempt.
class Creator {
 public:
  explicit Creator(JobSetContext& context) : context_(context) {}

  void create_missing(std::size_t position) {
    const ReplicatedJobState& rjob = context_.rjobs[position];
    if (static_cast<std::int32_t>(rjob.taken.size()) + rjob.expired >= rjob.replicas) return;
    if (is_full()) return;
    if (!layout_) layout_ = Layout::of(context_.jobset);
    const JobFactory factory(context_.jobset, *layout_, position, context_.observed.decorators);
    const std::size_t weight = kube::weight_of(rjob.spec->template_);
    auto taken = rjob.taken.begin();
    for (std::int32_t index = 0; index < rjob.replicas; ++index) {
      while (taken != rjob.taken.end() && *taken < index) ++taken;
      if (taken != rjob.taken.end() && *taken == index) continue;
      if (std::binary_search(rjob.done.begin(), rjob.done.end(), index)) continue;
      if (is_full()) return;
      ++created_;
      weight_ += weight;
      context_.plan.actions.push_back(
          creation(context_, factory.make(index, job_attempt(context_, rjob, index))));
    }
  }

 private:
  bool is_full() {
    if (created_ < kMaxCreations && weight_ <= kMaxWeight) return false;
    context_.plan.requeue_after = std::chrono::milliseconds(0);
    return true;
  }

  JobSetContext& context_;
  std::optional<Layout> layout_;
  std::size_t created_ = 0;
  std::size_t weight_ = 0;
};

bool waits_for_previous(const JobSetContext& context) {
  const auto& policy = context.jobset.spec.failurePolicy;
  return policy && policy->restartStrategy.value_or("Recreate") == "BlockingRecreate" &&
         !context.jobs.previous.empty();
}

void end_in_order(JobSetContext& context) {
  context.set_condition(kStartupCompleted, true, "InOrderStartupPolicyCompleted",
                        "in order startup policy has completed");
}

}  // namespace

void start_in_order(JobSetContext& context) {
  context.set_condition(kStartupInProgress, true, "InOrderStartupPolicyInProgress",
                        "in order startup policy is in progress");
}

void create_jobs(JobSetContext& context) {
  Creator creator(context);
  const bool is_blocked = waits_for_previous(context);
  for (std::size_t i = 0; i < context.rjobs.size(); ++i) {
    const ReplicatedJobState& rjob = context.rjobs[i];
    if (!are_dependencies_met(context, rjob)) continue;
    if (context.is_in_order() && rjob.has_started()) continue;
    if (!is_blocked) creator.create_missing(i);
    if (context.is_in_order()) {
      start_in_order(context);
      return;
    }
  }
  if (context.is_in_order()) end_in_order(context);
}

}  // namespace trainer::jobset
