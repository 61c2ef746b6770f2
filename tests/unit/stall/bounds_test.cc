// The cost of a job of 10,000 ranks: memory, and the time of a decision.
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>

#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

constexpr std::int32_t kRanks = 10'000;

// All ranks report once, with texts as long as the protocol allows.
void report(Job& job, const std::string& dump) {
  const std::string line(300, 'x');
  for (Process& process : job.ranks) {
    kube::Json message = job.message_of(process, dump);
    message.set("top", fmt::format("/app/{}:{} main", line, process.rank % 3));
    message.set("leaf", line);
    message.set("born", line);
    const auto answer = job.watch->take(message, process.sender, job.now);
    if (!answer) FAIL(answer.error().message);
    process.answered = answer->dump;
    ++process.sent;
  }
}

std::size_t allocated() {
  return mallinfo2().uordblks;
}

TEST_CASE("a job of 10,000 ranks fits its bounds") {
  const std::size_t before = allocated();
  Limits limits;
  limits.period = std::chrono::seconds(100);
  Job job(kRanks, limits, 8);
  for (Process& process : job.ranks) {
    process.sender.pod.resize(60, 'p');
    process.sender.uid.resize(36, 'u');
    process.sender.node.resize(63, 'n');
    process.steps = 5;
  }
  const std::size_t without = allocated();
  report(job, "");
  const std::size_t bytes = job.watch->bytes();
  CHECK(bytes < std::size_t{24} << 20);
  if (!trainer::test::kIsSanitized) {
    // The estimate is one of what was allocated.
    const std::size_t real = allocated() - without;
    INFO(real << " allocated, " << bytes << " estimated, " << without - before << " of the test");
    CHECK(real < bytes + bytes / 4);
    CHECK(real > bytes / 2);
  }
  job.now += std::chrono::seconds(10);
  CHECK(job.watch->decide(job.now));
  CHECK(name_of(job.watch->verdict().phase) == "Running");

  job.stop(kAllReduce);
  job.leave(77, kLoad);
  for (int i = 0; i < 2; ++i) {
    job.now += std::chrono::seconds(200);
    report(job, "");
  }
  CHECK(job.watch->decide(job.now));
  CHECK(name_of(job.watch->verdict().phase) == "Stalling");
  report(job, "");
  const std::string id = job.ranks[0].answered;
  REQUIRE_FALSE(id.empty());
  report(job, id);
  CHECK(job.watch->stacks().get_array("ranks").size() == kMaxWholeStacks);
  CHECK(job.watch->bytes() < std::size_t{40} << 20);
  const auto begun = std::chrono::steady_clock::now();
  job.watch->decide(job.now);
  const Seconds took = std::chrono::steady_clock::now() - begun;
  CHECK(job.suspects() == std::vector<std::int32_t>{77});
  // The rank that is away is among those that are kept whole.
  bool has_suspect = false;
  const kube::Json stacks = job.watch->stacks();
  for (const kube::Json& rank : stacks.get_array("ranks"))
    has_suspect = has_suspect || rank.get_int("rank") == 77;
  CHECK(has_suspect);
  INFO(took.count() << " s");
  CHECK(took < Seconds(1));
}

TEST_CASE("agents of a hostile job make no more than the highest number of ranks") {
  Watch watch({}, SteadyTime());
  for (int pod = 0; pod < 600; ++pod) {
    kube::Json workers = kube::Json::array();
    for (int i = 0; i < 100; ++i)
      workers.push_back(kube::Json::object({{"rank", (pod * 64 + i) % kMaxRanks},
                                            {"pid", 1 + i},
                                            {"born", std::string(100, 'b')},
                                            {"state", std::string(100, 's')},
                                            {"text", std::string(20'000, 't')}}));
    const kube::Json agent = kube::Json::object({{"v", 1},
                                                 {"role", "agent"},
                                                 {"pid", 1},
                                                 {"born", ""},
                                                 {"sent", pod},
                                                 {"workers", std::move(workers)}});
    const Sender sender{std::string(300, 'p'), fmt::format("uid-{}", pod), std::string(300, 'n')};
    CHECK(watch.take(agent, sender, SteadyTime()));
  }
  CHECK(watch.bytes() < std::size_t{64} << 20);
  CHECK_FALSE(watch.decide(SteadyTime()));
}

}  // namespace
}  // namespace trainer::stall::test
