// Runtimes that are read from a scripted API server.
#include "controller/kinds/trainjob/runtime_snapshots.hh"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const std::string kRuntimePath = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/rt";
const kube::ObjectKey kKey{"", "rt"};

std::string runtime(const std::string& version, int nodes) {
  return fmt::format(
      R"({{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"ClusterTrainingRuntime",
      "metadata":{{"name":"rt","uid":"u","resourceVersion":"{}"}},
      "spec":{{"mlPolicy":{{"numNodes":{}}}}}}})",
      version, nodes);
}

struct RuntimeSnapshotsFixture : kube::test::ScriptedPeer {
  using Answer = kube::Result<RuntimeSnapshots::Content>;
  RuntimeSnapshots snapshots{client};
  std::vector<Answer> answers;

  void ask() {
    kube::asio::co_spawn(io, snapshots.read_live(kClusterTrainingRuntimes, kKey),
                         [this](std::exception_ptr error, Answer answer) {
                           REQUIRE_FALSE(error);
                           answers.push_back(std::move(answer));
                         });
  }
  bool wait_for(std::size_t count) {
    return kube::run_until(io, [&] { return answers.size() >= count; });
  }
  int nodes(std::size_t index) const {
    return *(*answers.at(index))->runtime->spec.mlPolicy->numNodes;
  }
};

}  // namespace

TEST_CASE("callers share the request after theirs") {
  RuntimeSnapshotsFixture f;
  f.api.on("GET", kRuntimePath).answer(200, runtime("1", 1));
  f.api.on("GET", kRuntimePath).answer(200, runtime("2", 2));
  f.ask();
  REQUIRE(kube::run_until(f.io, [&] { return f.api.log().size() == 1; }));
  // The first request was sent before these calls, so its answer may be too old for them.
  for (int i = 0; i < 10; ++i) f.ask();
  REQUIRE(f.wait_for(11));
  CHECK(f.api.log().size() == 2);
  CHECK(f.nodes(0) == 1);
  for (std::size_t i = 1; i < 11; ++i) CHECK(f.nodes(i) == 2);
  CHECK(*f.answers[1] == *f.answers[10]);
}

TEST_CASE("a later caller sends another request") {
  RuntimeSnapshotsFixture f;
  f.api.on("GET", kRuntimePath).answer(200, runtime("1", 1)).times(2);
  f.api.on("GET", kRuntimePath).answer(200, runtime("2", 2));
  for (std::size_t i = 0; i < 3; ++i) {
    f.ask();
    REQUIRE(f.wait_for(i + 1));
  }
  CHECK(f.api.log().size() == 3);
  CHECK(*f.answers[0] == *f.answers[1]);  // unchanged: the very same snapshot
  CHECK(f.nodes(2) == 2);
}

TEST_CASE("all callers that waited for an answer get its error, and no later caller does") {
  RuntimeSnapshotsFixture f;
  f.api.on("GET", kRuntimePath).answer(200, runtime("1", 1));
  f.api.on("GET", kRuntimePath)
      .answer(404, R"({"kind":"Status","code":404,"message":"no such runtime"})");
  f.api.on("GET", kRuntimePath).answer(200, runtime("2", 2));
  f.ask();
  REQUIRE(kube::run_until(f.io, [&] { return f.api.log().size() == 1; }));
  f.ask();
  f.ask();
  REQUIRE(f.wait_for(3));
  for (const std::size_t i : {1U, 2U}) {
    REQUIRE_FALSE(f.answers[i]);
    CHECK(f.answers[i].error().message == "no such runtime");
  }
  f.ask();
  REQUIRE(f.wait_for(4));
  CHECK(f.nodes(3) == 2);
}

TEST_CASE("equal texts are kept once, wherever they come from") {
  RuntimeSnapshotsFixture f;
  f.api.on("GET", kRuntimePath).answer(200, runtime("1", 1)).times(2);
  f.ask();
  REQUIRE(f.wait_for(1));
  auto live = *f.answers[0];
  CHECK(f.snapshots.of(live->text) == live);
  const auto other = f.snapshots.of("nonsense");
  CHECK_FALSE(other->runtime);
  CHECK(f.snapshots.of("nonsense") == other);
  // No one uses it any more, so it is freed.
  const std::weak_ptr<const RuntimeSnapshot> last = live;
  live.reset();
  f.answers.clear();
  CHECK(last.expired());
  f.ask();
  REQUIRE(f.wait_for(1));
  CHECK(f.nodes(0) == 1);
}

TEST_CASE("a text that is too large for others is read for the job that started with it") {
  RuntimeSnapshotsFixture f;
  const std::string text = runtime("1", 1) + std::string(513U << 10, ' ');
  const std::string hash = kube::sha256_hex(text);
  const auto foreign = f.snapshots.of(text);
  CHECK_FALSE(foreign->is_object);
  CHECK(f.snapshots.of(text, kube::sha256_hex("another")) == foreign);
  const auto own = f.snapshots.of(text, hash);
  CHECK(own->is_object);
  CHECK(f.snapshots.of(text, hash) == own);
  const std::string broken = "[" + std::string(513U << 10, ' ');
  const auto unreadable = f.snapshots.of(broken, kube::sha256_hex(broken));
  CHECK(f.snapshots.of(broken, kube::sha256_hex(broken)) == unreadable);
}

TEST_CASE("of a thousand texts only those in use are kept") {
  RuntimeSnapshotsFixture f;
  std::vector<RuntimeSnapshots::Content> kept;
  for (int i = 0; i < 1000; ++i) {
    const auto content = f.snapshots.of(fmt::format("text: {}", i));
    if (i % 100 == 0) kept.push_back(content);
  }
  for (int i = 0; i < 10; ++i)
    CHECK(f.snapshots.of(fmt::format("text: {}", i * 100)) == kept[static_cast<std::size_t>(i)]);
}
