// The rules alone: rows of ranks, and what is said of them.
#include "runtimes/stall/verdict.hh"

#include <chrono>

#include "runtimes/stall/heartbeats.hh"
#include "tests/support/catch.hh"

namespace trainer::stall::test {
namespace {

using Reports = std::map<std::int32_t, RankReport>;

RankReport rank_at(std::string_view line, Wait wait, std::int64_t seq = -1) {
  RankReport report;
  report.age = Seconds(1);
  report.idle = Seconds(400);
  report.quiet = Seconds(400);
  report.steps = 50;
  report.batches = 0;
  report.seq = seq;
  report.has_stack = true;
  report.wait = wait;
  report.line = line;
  return report;
}
RankReport waits(std::int64_t seq = -1) {
  return rank_at("train.py:80 main", Wait::kWaiting, seq);
}
RankReport waits_at(std::string_view line) {
  return rank_at(line, Wait::kWaiting);
}
RankReport barrier(std::int64_t seq = -1) {
  return rank_at("train.py:90 main", Wait::kWaiting, seq);
}
RankReport loads(std::int64_t seq = -1) {
  return rank_at("data.py:5 read", Wait::kAway, seq);
}
RankReport item(std::int64_t seq = -1) {
  return rank_at("train.py:81 main", Wait::kAway, seq);
}
RankReport silent(double age) {
  RankReport report = waits();
  report.has_stack = false;
  report.age = Seconds(age);
  return report;
}
RankReport with(RankReport report, void (*change)(RankReport&)) {
  change(report);
  return report;
}

struct Row {
  std::string name;
  std::vector<RankReport> ranks;
  std::string result;  // the phase or the rule
  std::vector<std::int32_t> suspects;
  std::int32_t world = 0;  // 0 means the number of ranks
  double watched = 10'000;
};

std::vector<RankReport> many(std::size_t count, const RankReport& each,
                             const std::vector<RankReport>& more = {}) {
  std::vector<RankReport> ranks(count, each);
  ranks.insert(ranks.end(), more.begin(), more.end());
  return ranks;
}

const auto kNoStack = [](RankReport& r) { r.has_stack = false, r.wait = Wait::kUnknown; };
const auto kAwaited = [](RankReport& r) { r.has_stack = false, r.is_awaited = true; };
const auto kBusy = [](RankReport& r) { r.quiet = Seconds(1); };
const auto kEnds = [](RankReport& r) { r.has_ended = true; };
const auto kStop = [](RankReport& r) { r.is_stopped = true, r.age = Seconds(90); };
const auto kNoStep = [](RankReport& r) { r.steps = 0, r.idle = r.quiet = Seconds(1300); };
const auto kSteps = [](RankReport& r) { r.idle = Seconds(3); };

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"nothing", {}, "Unknown", {}, 0},
      {"1 of 8 loads", many(7, waits(), {loads()}), "NotWaiting", {7}},
      {"2 of 4 load", many(2, waits(), {loads(), loads()}), "NotWaiting", {2, 3}},
      {"3 of 4 load", many(1, waits(), many(3, loads())), "Undecided", {}},
      {"3 of 4 load, by number", many(1, waits(9), many(3, loads(8))), "Behind", {1, 2, 3}},
      {"all load", many(4, loads()), "SamePlace", {}},
      {"one rank", {loads()}, "SamePlace", {}},
      {"7 at an item, 1 loads", many(7, item(), {loads()}), "Apart", {7}},
      {"7 at an item, 1 in a barrier", many(7, item(), {barrier()}), "Undecided", {}},
      {"the same, by number", many(7, item(9), {barrier(8)}), "Behind", {7}},
      {"two ranks, two collectives", {waits(), barrier()}, "Undecided", {}},
      {"the same, by number", {waits(5), barrier(4)}, "Behind", {1}},
      {"a number too many", many(5, waits(5), {barrier(6)}), "Undecided", {}},
      {"a group waits for its own", {waits(9), waits(9), waits(8), loads(8)}, "Undecided", {}},
      {"a rank waits for its GPU", {waits(9), item(8), waits(9), loads(7)}, "Behind", {3}},
      {"the same, and one skipped", {waits(9), waits(9), item(8), barrier(7)}, "Undecided", {}},
      {"the same, without numbers", {waits(), waits(), item(), loads()}, "Undecided", {}},
      {"one number is unknown", {waits(9), waits(), loads(8)}, "NotWaiting", {2}},
      {"the network", many(8, waits()), "SamePlace", {}},
      {"a skipped collective", many(3, waits(), {barrier()}), "Apart", {3}},
      {"one is silent", many(3, waits(), {silent(398)}), "Silent", {3}},
      {"silent, and others step", {waits(), with(waits(), kSteps), silent(398)}, "Running", {}},
      {"all are silent", many(4, silent(398)), "Unknown", {}},
      {"most are silent", many(1, waits(), many(3, silent(398))), "Undecided", {}},
      {"silent for a short time", many(3, waits(), {silent(100)}), "Undecided", {}},
      {"silent long before", many(3, waits(), {silent(2000)}), "Undecided", {}},
      {"one never reported, a rank waits since the start",
       many(3, with(barrier(), kNoStep)),
       "NeverReported",
       {3},
       4},
      {"the same, too early", many(3, with(barrier(), kNoStep)), "Undecided", {}, 4, 1100},
      {"the same, at the begin", many(3, with(barrier(), kNoStep)), "Stalling", {}, 4, 50},
      {"one never reported, and steps were made", many(3, waits()), "NeverReported", {3}, 4},
      {"the same, but not all wait", many(3, waits(), {loads()}), "Undecided", {}, 5},
      {"half never reported, and steps were made", many(2, waits()), "Undecided", {}, 4},
      {"one ended", many(3, waits(), {with(waits(), kEnds)}), "Ended", {3}},
      {"one ended, none waits", many(3, loads(), {with(loads(), kEnds)}), "SamePlace", {}},
      {"all ended", many(4, with(waits(), kEnds)), "Ended", {}},
      {"one is stopped, before the number",
       many(3, waits(9), {with(loads(8), kStop)}),
       "Stopped",
       {3}},
      {"no stacks yet", many(3, waits(), {with(waits(), kAwaited)}), "Stalling", {}},
      {"one has no stack", many(3, waits(), {with(loads(), kNoStack)}), "Undecided", {}},
      {"most have no stack", many(1, loads(8), many(3, with(waits(9), kNoStack))), "Undecided", {}},
      {"one is busy", many(3, waits(), {with(loads(), kBusy)}), "Stalling", {}},
      {"one waits and is busy", many(3, loads(), {with(waits(), kBusy)}), "Undecided", {}},
      {"one is busy and another stopped",
       {with(loads(), kBusy), with(waits(), kStop)},
       "Stopped",
       {1}},
      {"a first step of 400 s",
       many(4, with(loads(), [](RankReport& r) { r.steps = 0; })),
       "Starting",
       {}},
      {"a gap of 200 s",
       many(4, with(loads(), [](RankReport& r) { r.gap = Seconds(200); })),
       "Running",
       {}},
      {"no steps, and one is busy",
       many(3, with(loads(), kNoStep), {with(with(loads(), kNoStep), kBusy)}),
       "Starting",
       {}},
      {"16 of 64 load",
       many(48, waits(), many(16, loads())),
       "NotWaiting",
       {48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63}},
      {"17 of 64 load", many(47, waits(), many(17, loads())), "Undecided", {}},
      {"4 of 9 load", many(5, waits(), many(4, loads())), "Undecided", {}},
      {"3 of 9 load", many(6, waits(), many(3, loads())), "NotWaiting", {6, 7, 8}},
      {"4 of 9 are apart", many(5, item(), many(4, loads())), "Undecided", {}},
      {"two places of two", {item(), item(), loads(), loads()}, "Undecided", {}},
      {"a skipped collective, where each node has its own folder",
       {waits_at("/pods/a/code/./train.py:80 main"), waits_at("/pods/b/code/./train.py:80 main"),
        waits_at("/pods/c/code/train.py:80 main"), waits_at("/pods/b/code/train.py:90 main")},
       "Apart",
       {3}},
      {"two load, where each node has its own folder",
       {waits(), waits(), rank_at("/pods/a/code/data.py:5 read", Wait::kAway),
        rank_at("/pods/b/code/data.py:7 open", Wait::kAway)},
       "NotWaiting",
       {2, 3}},
      {"files of one name in two folders",
       {waits(), waits(), rank_at("/app/a/__init__.py:5 read", Wait::kAway),
        rank_at("/app/b/__init__.py:5 read", Wait::kAway)},
       "Undecided",
       {}},
      {"lines that are no places", {waits_at("/"), waits_at("x"), waits_at(":5")}, "Undecided", {}},
  };
  return kRows;
}

TEST_CASE("rules of the verdict") {
  for (const Row& row : rows()) {
    INFO(row.name);
    Reports reports;
    for (const RankReport& rank : row.ranks)
      reports.emplace(static_cast<std::int32_t>(reports.size()), rank);
    const auto world = row.world != 0 ? row.world : static_cast<std::int32_t>(row.ranks.size());
    const Verdict verdict = decide(reports, world, Seconds(row.watched), Limits());
    const bool is_stalled = verdict.phase == Phase::kStalled;
    CHECK((is_stalled ? name_of(verdict.rule) : name_of(verdict.phase)) == row.result);
    std::vector<std::int32_t> suspects;
    for (const Suspect& suspect : verdict.suspects) suspects.push_back(suspect.rank);
    CHECK(suspects == row.suspects);
    CHECK(verdict.suspect_count == static_cast<std::int32_t>(row.suspects.size()));
    CHECK(verdict.world == world);
    if (!is_stalled) CHECK(verdict.groups.empty());
  }
}

TEST_CASE("lists of a verdict are bounded, with a count of all") {
  Reports reports;
  std::vector<std::string> lines;
  for (std::int32_t i = 0; i < 1000; ++i) lines.push_back("line " + std::to_string(i % 40));
  for (std::int32_t i = 0; i < 1000; ++i) {
    RankReport rank = i < 500 ? barrier(9) : loads(8);
    rank.line = lines[static_cast<std::size_t>(i)];
    reports.emplace(i, rank);
  }
  const Verdict verdict = decide(reports, 1000, Seconds(10'000), Limits());
  CHECK(name_of(verdict.rule) == "Behind");
  CHECK(verdict.suspect_count == 500);
  CHECK(verdict.suspects.size() == kMaxSuspects);
  CHECK(verdict.suspects.front().rank == 500);
  CHECK(verdict.group_count == 40);
  CHECK(verdict.groups.size() == kMaxGroups);
  CHECK(verdict.waiting == 500);
  const Verdict alone = decide({{0, waits()}}, kMaxRanks, Seconds(10'000), Limits());
  CHECK(alone.missing_count == kMaxRanks - 1);
  CHECK(alone.missing.size() == kMaxListed);
}

TEST_CASE("every rule has a name") {
  for (int i = 0; i <= static_cast<int>(Rule::kUndecided); ++i)
    CHECK_FALSE(name_of(static_cast<Rule>(i)).empty());
}

TEST_CASE("a rank that never reported is described by its agent") {
  Reports reports;
  for (std::int32_t i = 0; i < 3; ++i) reports.emplace(i, with(barrier(), kNoStep));
  RankReport unheard;
  unheard.pod = "job-node-1";
  unheard.has_reported = false;
  unheard.signal_line = "setup.py:3 import";
  reports.emplace(3, unheard);
  const Verdict verdict = decide(reports, 4, Seconds(2000), Limits());
  REQUIRE(verdict.suspects.size() == 1);
  CHECK(verdict.suspects[0].pod == "job-node-1");
  CHECK(verdict.suspects[0].line == "setup.py:3 import");
  CHECK(verdict.suspects[0].where == "by signal");
  CHECK(verdict.missing_count == 1);
}

}  // namespace
}  // namespace trainer::stall::test
