#include "controller/kinds/batch/job_controller.hh"

#include <utility>

#include "kube/manager/executor.hh"
#include "kube/model/resources.hh"

namespace trainer::batch {
namespace {

using kube::Debounce;
using kube::Requeue;
using kube::Result;
using kube::Task;

// Names that the API server generates have these characters: no vowels, and no digits that look
// like letters.
std::string name_suffix(kube::Random& random) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix(5, ' ');
  for (char& letter : suffix) letter = kLetters[random.next() % kLetters.size()];
  return suffix;
}

}  // namespace

JobController::JobController(const kube::ControllerContext& context)
    : PlannedController(context, context.caches.get<kube::StoredObject>(all_of(kube::kJobs)),
                        std::make_shared<kube::DecodedObjects<BatchJob>>(read_job)),
      pods_(context.caches.get<BatchPodView>(batch_pods())) {}

void JobController::on_pod(const Pod& before, const Pod& after) {
  if (is_unchanged(before, after)) return;
  const bool is_urgent = !after || !after->is_active();
  for (const Pod& pod : {before, after})
    if (pod && !pod->job.empty())
      context().router.enqueue(context().id, {pod->ns, pod->job},
                               is_urgent ? Debounce::kShort : Debounce::kCounters);
}

// The manager enqueues the Jobs. This enqueues the keys of Jobs that are gone and have left pods.
void JobController::enqueue_all() {
  pods_.each([this](const kube::ObjectKey& key, const Pod& pod) {
    if (pod->is_tracked && !pod->job.empty())
      context().router.enqueue(context().id, {key.ns, pod->job}, Debounce::kNone);
  });
}

Observed JobController::observe(const kube::ObjectKey& key) const {
  Observed observed;
  observed.pods = pods_.find_by(kByJob, key.ns, key.name);
  observed.new_suffix = [this] { return name_suffix(context().client.random()); };
  observed.now = context().client.clock().now().whole_seconds();
  return observed;
}

Task<BatchJobPlan> JobController::plan(const Subject& subject) {
  Observed observed = observe(subject.key());
  observed.job = subject.decoded.get();
  observed.backoff = subject.memory->backoff;
  co_return batch::plan(observed);
}

Result<void> JobController::complete(const Subject& subject, BatchJobPlan& plan) {
  subject.memory->backoff = std::move(plan.backoff);
  return {};
}

Task<Result<Requeue>> JobController::reconcile_gone(kube::ObjectKey key) {
  BatchJobPlan plan = batch::plan(observe(key));
  if (plan.actions.empty()) co_return Requeue{};
  const auto outcome = co_await context().executor.run(std::move(plan.actions));
  if (outcome.failure) co_return tl::unexpected(outcome.failure->error);
  co_return Requeue{};
}

}  // namespace trainer::batch
