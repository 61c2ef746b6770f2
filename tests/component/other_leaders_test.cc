// Leaders of other namespaces, by their Leases on a scripted API server.
#include "controller/process/other_leaders.hh"

#include <fmt/format.h>

#include "kube/client/task_group.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/component/captured_errors.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const std::string kOthersLeasesPath = "/apis/coordination.k8s.io/v1/leases";

std::string lease(const std::string& ns, const std::string& holder, int second) {
  return fmt::format(
      R"({{"metadata":{{"name":"lead","namespace":"{}"}},
          "spec":{{"holderIdentity":"{}","renewTime":"2026-01-01T00:00:{:02}Z"}}}})",
      ns, holder, second);
}

}  // namespace

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "a leader in another namespace is noticed, not a Lease that is left") {
  const test::CapturedErrors captured;
  std::vector<std::size_t> counts;
  int second = 0;
  std::string other = "them";
  api.on("GET", kOthersLeasesPath).always().reply([&](const kube::ReceivedRequest&) {
    ++second;
    return kube::ScriptedReply(200, R"({"metadata":{"resourceVersion":"5"},"items":[)" +
                                        lease("own", "us", second) + "," + lease("old", "gone", 7) +
                                        "," + lease("kubeflow", other, second) + "]}");
  });
  kube::TaskGroup tasks{io.get_executor(),
                        [](std::string_view, std::string_view what) { FAIL(std::string(what)); }};
  std::function<void(std::string_view, std::size_t)> on_count =
      [&counts](std::string_view, std::size_t count) { counts.push_back(count); };
  tasks.spawn("other leaders", look_for_other_leaders(client, {"own", "lead"}, on_count, log));
  const auto look = [&](std::size_t times) {
    REQUIRE(kube::run_until(io, [&] { return counts.size() == times && clock.timers() > 0; }));
    clock.advance(std::chrono::seconds(30));
  };
  look(1);
  look(2);
  look(3);
  other.clear();  // it has given its Lease back
  look(4);
  other = "them again";
  look(5);
  look(6);
  CHECK(counts == std::vector<std::size_t>{0, 1, 1, 0, 0, 1});
  tasks.cancel();
  kube::run_task(io, tasks.join());
  // It is reported once as long as it is held: nothing is remembered about namespaces that are
  // gone.
  CHECK(captured.count("another leader") == 2);
  CHECK(captured.count("kubeflow/lead") == 2);
}
