#include "controller/core/worker.hh"

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <exception>

#include "kube/client/yield.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Result;
using kube::Task;

constexpr kube::Milliseconds kLongestWait{300'000};

// The one place where a bug in a rule becomes an error of one object.
Task<Result<Requeue>> guarded(WorkerPool& loop, kube::ObjectKey key) {
  std::string what;
  try {
    co_return co_await loop.reconcile(std::move(key));
  } catch (const boost::system::system_error& error) {
    if (error.code() == kube::asio::error::operation_aborted) throw;  // the group was cancelled
    what = error.what();
  } catch (const std::exception& error) {
    what = error.what();
  }
  co_return kube::fail(ErrorCode::kInternal, "a bug: " + what);
}

void settle(WorkerPool& loop, const kube::ObjectKey& key, const Result<Requeue>& result) {
  if (result) {
    loop.queue.forget(key);
    if (*result) loop.queue.add_after(key, **result);
    return;
  }
  if (const auto wait = result.error().retry_after) {
    loop.queue.add_after(key, std::min(*wait, kLongestWait));  // the API server has asked for it
  } else {
    loop.queue.add_failed(key);
  }
  // Somebody wrote in between: the newer state is on its way, and there is nothing to tell.
  if (result.error().code == ErrorCode::kConflict) return;
  loop.log.warn("failed", {{"loop", loop.name},
                           {"object", key.to_string()},
                           {"why", result.error().message},
                           {"tries", std::to_string(loop.queue.failures(key))}});
}

}  // namespace

Task<void> run_worker(WorkerPool& loop) {
  while (true) {
    const auto key = co_await loop.queue.next();
    if (!key) co_return;
    // An unchanged object waits for nothing: without this, a thousand of them, or the first of
    // every worker, would be one step.
    co_await kube::yield();
    const auto begin = std::chrono::steady_clock::now();
    const auto result = co_await guarded(loop, *key);
    const auto took = std::chrono::steady_clock::now() - begin;
    loop.metrics.reconciled(loop.name,
                            !result   ? "error"
                            : *result ? "requeue_after"
                                      : "success",
                            took);
    settle(loop, *key, result);
    loop.queue.done(*key);
  }
}

void start_workers(kube::TaskGroup& group, WorkerPool& loop, int count) {
  for (int i = 0; i < count; ++i) {
    group.spawn(loop.name + " worker " + std::to_string(i), run_worker(loop));
  }
}

}  // namespace trainer
