// How workers go on after a reconcile that failed.
#include "kube/manager/worker_pool.hh"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "controller/process/metrics.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::ErrorCode;
using std::chrono::seconds;

namespace {

kube::Task<kube::Result<kube::Requeue>> abort_first(int& reconciles) {
  if (++reconciles == 1) throw boost::system::system_error(kube::asio::error::operation_aborted);
  co_return kube::Requeue{};
}

kube::Task<kube::Result<kube::Requeue>> fail_with(int& reconciles, kube::Error error) {
  ++reconciles;
  co_return tl::unexpected(std::move(error));
}

kube::Error due(kube::Error error) {
  error.retry_within = seconds(30);
  return error;
}

}  // namespace

TEST_CASE_METHOD(test::ScriptedPeer, "a reconcile that is aborted without reason ends no worker") {
  Metrics metrics;
  kube::WorkQueue queue(io, clock);
  int reconciles = 0;
  kube::Reconcile reconcile = [&reconciles](const kube::ObjectKey&) {
    return abort_first(reconciles);
  };
  kube::WorkerPool pool{"widget", queue, reconcile, metrics, log};
  kube::TaskGroup group(io.get_executor(), [](auto, std::string_view what) { FAIL(what); });
  kube::start_workers(group, pool, 1);
  queue.add({"n", "w"});
  REQUIRE(kube::run_until(io, [&] { return reconciles == 1 && clock.timers() > 0; }));
  clock.advance(std::chrono::seconds(60));
  CHECK(kube::run_until(io, [&reconciles] { return reconciles == 2; }));
  group.cancel();
  kube::run_task(io, group.join());
}

TEST_CASE_METHOD(test::ScriptedPeer,
                 "what an outage has failed is tried again a minute after its end at the latest") {
  const struct {
    const char* about;
    kube::Error error;
    seconds longest;
  } rows[] = {
      {"no API server", {ErrorCode::kNetwork, "connection refused"}, seconds(60)},
      {"etcd is full", {ErrorCode::kServerError, "etcdserver: no space", 500}, seconds(60)},
      {"its token counts no more", {ErrorCode::kUnauthorized, "Unauthorized", 401}, seconds(60)},
      {"a right is gone",
       {ErrorCode::kForbidden,
        R"(jobs.batch is forbidden: User "system:serviceaccount:s:m" cannot create)", 403},
       seconds(60)},
      {"no quota is left",
       {ErrorCode::kForbidden, R"(jobs.batch "j" is forbidden: exceeded quota: q)", 403},
       seconds(1'000)},
      {"the object is wrong", {ErrorCode::kInvalid, "spec: Required value", 422}, seconds(1'000)},
      {"something is due", due({ErrorCode::kInvalid, "spec: Required value", 422}), seconds(30)},
      {"something is due, in an outage", due({ErrorCode::kNetwork, "refused"}), seconds(30)},
  };
  for (const auto& row : rows) {
    INFO(row.about);
    Metrics metrics;
    kube::WorkQueue queue(io, clock);
    int reconciles = 0;
    kube::Reconcile reconcile = [&reconciles, &row](const kube::ObjectKey&) {
      return fail_with(reconciles, row.error);
    };
    kube::WorkerPool pool{"widget", queue, reconcile, metrics, log};
    kube::TaskGroup group(io.get_executor(), [](auto, std::string_view what) { FAIL(what); });
    kube::start_workers(group, pool, 1);
    queue.add({"n", "w"});
    std::chrono::steady_clock::duration wait{};
    for (int tries = 1; tries <= 20; ++tries) {
      REQUIRE(kube::run_until(io, [&] { return reconciles == tries && clock.timers() > 0; }));
      wait = clock.until_next();
      clock.advance(std::chrono::ceil<std::chrono::microseconds>(wait));
    }
    CHECK(wait == row.longest);
    group.cancel();
    kube::run_task(io, group.join());
  }
}
