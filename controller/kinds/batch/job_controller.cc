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
    : context_(context),
      jobs_(context.caches.get<kube::StoredObject>(all_of(kube::kJobs))),
      pods_(context.caches.get<PodView>(batch_pods())) {}

void JobController::on_pod(const Pod& before, const Pod& after) {
  if (is_unchanged(before, after)) return;
  const bool is_urgent = !after || !after->is_active();
  for (const Pod& pod : {before, after})
    if (pod && !pod->job.empty())
      context_.router.enqueue(context_.id, {pod->ns, pod->job},
                              is_urgent ? Debounce::kShort : Debounce::kCounters);
}

// The manager enqueues the Jobs. This enqueues the keys of Jobs that are gone and have left pods.
void JobController::enqueue_all() {
  pods_.each([this](const kube::ObjectKey& key, const Pod& pod) {
    if (pod->is_tracked && !pod->job.empty())
      context_.router.enqueue(context_.id, {key.ns, pod->job}, Debounce::kNone);
  });
}

Observed JobController::observe(const kube::ObjectKey& key, const Job* job) const {
  Observed observed;
  observed.job = job;
  observed.pods = pods_.find_by(kByJob, key.ns, key.name);
  if (job)
    if (const auto known = backoffs_.find(job->metadata.uid); known != backoffs_.end())
      observed.backoff = known->second;
  observed.new_suffix = [this] { return name_suffix(context_.client.random()); };
  observed.now = context_.client.clock().now().whole_seconds();
  return observed;
}

Task<Result<Requeue>> JobController::reconcile(kube::ObjectKey key) {
  const auto stored = jobs_.find(key);
  if (!stored) co_return co_await release_pods(std::move(key));
  const auto job = decoded_.of(stored);
  JobPlan plan = batch::plan(observe(key, job.get()));
  // The backoff is kept also if the plan fails, so that the same pods do not count twice.
  if (!plan.backoff.empty() || backoffs_.count(stored->uid))
    backoffs_[stored->uid] = std::move(plan.backoff);
  kube::ObjectRef object{key, stored->uid, stored->resource_version};
  co_return co_await context_.plan_runner.run(std::move(object), std::move(plan));
}

Task<Result<Requeue>> JobController::release_pods(kube::ObjectKey key) {
  JobPlan plan = batch::plan(observe(key, nullptr));
  if (plan.actions.empty()) co_return Requeue{};
  const auto outcome = co_await context_.executor.run(std::move(plan.actions));
  if (outcome.failure) co_return tl::unexpected(outcome.failure->error);
  co_return Requeue{};
}

}  // namespace trainer::batch
