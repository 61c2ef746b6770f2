// A job that hangs, over networks that lose, delay and repeat messages: never a wrong name.
#include <fmt/format.h>

#include "tests/support/catch.hh"
#include "tests/support/sanitizer.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

struct Result {
  int named = 0, undecided = 0;
  std::string wrong;
};

void inject(Job& job, std::int32_t culprit, int kind) {
  Process& process = job.ranks[static_cast<std::size_t>(culprit)];
  job.stop(kind == 3 ? kBackward : kind == 6 ? kItem : kAllReduce);
  if (kind == 6) job.leave(culprit, kLoad);
  if (kind == 0) job.leave(culprit, kLoad);
  if (kind == 1) job.leave(culprit, kJoin);
  if (kind == 2) process.is_heard = false;
  if (kind == 3) process.frames = kBarrier;
  if (kind == 4) {
    process.is_heard = false;
    process.state = "T";
  }
  if (kind == 5) {
    job.leave(culprit, kSave);
    process.io_rate = 1e6;  // until the limit of busy ranks
  }
}

void check_names(const Job& job, std::int32_t culprit, Result& result) {
  for (const Verdict& verdict : job.verdicts)
    for (const Suspect& suspect : verdict.suspects)
      if (suspect.rank != culprit && result.wrong.empty())
        result.wrong = fmt::format("rank {} by {}", suspect.rank, name_of(suspect.rule));
  const bool is_named = job.suspects() == std::vector<std::int32_t>{culprit};
  ++(is_named ? result.named : result.undecided);
}

void simulate(std::uint32_t seed, Result& result) {
  std::mt19937 random(seed);
  const auto draw = [&random](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  const std::int32_t ranks = 3 + draw(8);
  Job job(ranks, {}, 1 + draw(2));
  if (draw(2) == 0) job.without_sequence();
  if (draw(2) == 0) job.add_agents();
  job.set_network({draw(4) * 0.1, draw(3) * 0.2, draw(3) * 5}, seed);
  for (Process& process : job.ranks) process.never_dumps = draw(12) == 0;
  job.run(60 + draw(200));
  const std::int32_t culprit = draw(ranks);
  inject(job, culprit, draw(7));
  if (draw(4) == 0) {
    job.run(draw(600));
    job.restart_controller();
  }
  job.run(draw(3) == 0 ? 4500 : 900);
  check_names(job, culprit, result);
}

TEST_CASE("a network that loses messages brings no wrong name") {
  Result result;
  const auto seeds = static_cast<std::uint32_t>(trainer::test::times(1000));
  for (std::uint32_t seed = 0; seed < seeds && result.wrong.empty(); ++seed) {
    simulate(seed, result);
    INFO("seed " << seed << ": " << result.wrong);
    CHECK(result.wrong.empty());
  }
  // Most are named all the same.
  INFO(result.named << " named, " << result.undecided << " not");
  CHECK(result.named > result.undecided);
}

}  // namespace
}  // namespace trainer::stall::test
