// The times that follow from a job's threshold and its number of ranks.
#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

using std::chrono::seconds;

TEST_CASE("a job of many ranks has a longer period, and a threshold that fits it") {
  struct Row {
    std::int32_t threshold;
    std::int32_t ranks;
    seconds period, result;
  };
  const Row rows[] = {
      {300, 1, seconds(15), seconds(300)},      {300, 3'000, seconds(15), seconds(300)},
      {300, 3'001, seconds(16), seconds(300)},  {300, 10'000, seconds(50), seconds(300)},
      {300, 16'384, seconds(60), seconds(300)}, {100, 10'000, seconds(50), seconds(210)},
      {10, 1, seconds(2), seconds(10)},         {10, 400, seconds(2), seconds(10)},
      {10, 1'000, seconds(5), seconds(30)},     {10, 16'384, seconds(60), seconds(250)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.threshold, row.ranks);
    const Limits limits = limits_for(limits_of(row.threshold), row.ranks);
    CHECK(limits.period == row.period);
    CHECK(limits.threshold == row.result);
  }
}

TEST_CASE("whatever the threshold and the ranks, the limits fit each other") {
  for (std::int32_t threshold = kMinThreshold; threshold <= kMaxThreshold; threshold *= 2)
    for (std::int32_t ranks = 1; ranks <= kMaxRanks; ranks += 97) {
      const Limits limits = limits_for(limits_of(threshold), ranks);
      const bool fits = limits.threshold >= 3 * limits.period &&
                        limits.threshold >= seconds(threshold) &&
                        limits.start >= 2 * limits.threshold && limits.busy >= limits.threshold;
      const bool is_rare = ranks <= kMaxRate * limits.period.count() || limits.period == kMaxPeriod;
      CAPTURE(threshold, ranks);
      if (!fits || !is_rare) FAIL("the limits do not fit");
    }
  CHECK(limits_for(Limits(), 1).period == Limits().period);
}

TEST_CASE("the first answer to a rank has the period of the job's size") {
  Job job(2);
  const auto period_at = [&job](std::int32_t world, const std::string& attempt) {
    job.attempt = attempt;
    kube::Json message = job.message_of(job.ranks[0]);
    message.set("world", world);
    ++job.ranks[0].sent;
    const auto answer = job.watch->take(message, job.ranks[0].sender, job.now);
    REQUIRE(answer);
    return answer->period;
  };
  CHECK(period_at(10'000, "0") == seconds(50));
  // A later attempt may have fewer ranks.
  CHECK(period_at(8, "1") == seconds(15));
  CHECK(period_at(16'000, "2") == seconds(60));
  job.watch->decide(job.now);
  CHECK(period_at(16'000, "2") == seconds(60));
}

TEST_CASE("a hang is found in time at each period") {
  const Limits limits =
      GENERATE(limits_for(limits_of(300), kMaxRanks), limits_for(limits_of(10), kMaxRanks),
               limits_for(limits_of(300), 10'000), limits_of(300), limits_of(10));
  CAPTURE(limits.period.count(), limits.threshold.count());
  Job job(4, limits);
  job.run(1'000);
  for (const Verdict& verdict : job.verdicts) CHECK(name_of(verdict.phase) == "Running");
  job.stop(kAllReduce);
  job.leave(2, kLoad);
  const auto begun = job.now;
  while (name_of(job.watch->verdict().phase) != "Stalled" && job.now - begun < seconds(1'000))
    job.run(1);
  CHECK(job.suspects() == std::vector<std::int32_t>{2});
  CHECK(job.now - begun >= limits.threshold);
  // The job of the test decides once in a period. A short threshold of a small job is exceeded by
  // the time in which a rank may have moved.
  CHECK(job.now - begun <= std::max(limits.threshold, limits.silence()) + 2 * limits.period);
}

}  // namespace
}  // namespace trainer::stall::test
