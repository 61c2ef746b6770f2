#include "kube/manager/worker_pool.hh"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <exception>

#include "kube/client/yield.hh"
#include "kube/manager/pacing.hh"

namespace kube {
namespace {

constexpr Milliseconds kLongestWait{300'000};
// A task that failed because of an outage is tried again at most this long after the end of the
// outage.
constexpr Milliseconds kLongestInOutage{60'000};

// Returns whether others than the object's user have to change something. Quotas and webhooks
// answer 403 too; a missing right has the words of k8s.io/apiserver,
// pkg/endpoints/handlers/responsewriters.
bool is_outage(const Error& error) {
  const bool is_right_missing = error.code == ErrorCode::kForbidden &&
                                error.message.find("is forbidden: User \"") != std::string::npos;
  return error.is_transient() || error.code == ErrorCode::kUnauthorized || is_right_missing;
}

// Turns an exception (a bug in a rule) into an error of one object.
Task<Result<Requeue>> guarded(WorkerPool& pool, ObjectKey key) {
  std::string what;
  try {
    co_return co_await pool.reconcile(std::move(key));
  } catch (const std::exception& error) {
    what = error.what();
  }
  const auto asked = co_await asio::this_coro::cancellation_state;
  if (asked.cancelled() != asio::cancellation_type::none)
    throw boost::system::system_error(asio::error::operation_aborted);
  pool.metrics.panicked(pool.name);
  co_return fail(ErrorCode::kInternal, "a bug: " + what);
}

void requeue(WorkerPool& pool, const ObjectKey& key, const Result<Requeue>& result) {
  if (result) {
    pool.queue.forget(key);
    if (*result) pool.queue.add_after(key, **result);
    return;
  }
  const Error& error = result.error();
  const auto longest = error.retry_within.value_or(Milliseconds::max());
  if (const auto wait = error.retry_after) {
    pool.queue.add_after(key,
                         std::min({*wait, kLongestWait, longest}));  // the API server has asked
  } else {
    const auto most = is_outage(error) ? kLongestInOutage : WorkQueue::kLongestBackoff;
    pool.queue.add_rate_limited(key, std::min(most, longest));
  }
  // Another client wrote in between. The event of the newer version follows, and enqueues the
  // object.
  if (error.code == ErrorCode::kConflict) return;
  pool.log.warn("reconcile failed", {{"controller", pool.name},
                                     {"object", key.to_string()},
                                     {"why", error.message},
                                     {"tries", std::to_string(pool.queue.failures(key))}});
}

Task<void> run_worker(WorkerPool& pool, std::size_t number) {
  while (true) {
    const auto key = co_await pool.queue.next();
    if (!key) co_return;
    // The reconcile of an unchanged object never suspends: without this, a thousand of them would
    // run in one step of the event loop.
    co_await yield();
    const auto begin = std::chrono::steady_clock::now();
    pool.work[number] = WorkerPool::Work{*key, begin};
    const auto result = co_await guarded(pool, *key);
    const auto took = std::chrono::steady_clock::now() - begin;
    pool.work[number].reset();
    pool.metrics.reconciled(pool.name,
                            !result   ? "error"
                            : *result ? "requeue_after"
                                      : "success",
                            took);
    requeue(pool, *key, result);
    pool.queue.done(*key);
  }
}

}  // namespace

void start_workers(TaskGroup& group, WorkerPool& pool, int count) {
  pool.queue.share_workers(static_cast<std::size_t>(count), Pacing::kWorkerShare);
  pool.work.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pool.work.size(); ++i) {
    group.spawn(pool.name + " worker " + std::to_string(i), run_worker(pool, i));
  }
}

}  // namespace kube
