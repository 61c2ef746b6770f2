// Jobs that do well, or of which too little is known: no rank is named.
#include <set>

#include "tests/support/catch.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

// The phases that a job had, by name.
std::set<std::string> phases(const Job& job) {
  std::set<std::string> names;
  for (const Verdict& verdict : job.verdicts) names.insert(std::string(name_of(verdict.phase)));
  return names;
}

void check_no_name(const Job& job) {
  for (const Verdict& verdict : job.verdicts) CHECK(verdict.suspects.empty());
}

TEST_CASE("a validation of five thresholds that uses CPU is no stall") {
  Job job(4);
  job.run(100);
  job.stop({"/app/validate.py:5 score"});
  for (Process& process : job.ranks) process.cpu_rate = 0.8;
  job.run(1500);
  CHECK(phases(job).count("Stalled") == 0);
  check_no_name(job);
  job.train();
  job.run(60);
  CHECK(name_of(job.watch->verdict().phase) == "Running");
}

TEST_CASE("a checkpoint of one rank while the others wait is no stall as long as it writes") {
  Job job(4);
  job.run(100);
  job.stop(kBarrier);
  job.leave(0, kSave);
  job.ranks[0].io_rate = 5e6;
  job.run(3400);
  CHECK(phases(job).count("Stalled") == 0);
  SECTION("after the limit of busy ranks it is named as busy") {
    job.run(400);
    CHECK(job.suspects() == std::vector<std::int32_t>{0});
    CHECK(job.watch->verdict().suspects.at(0).is_busy);
    CHECK(job.watch->verdict().suspects.at(0).line == "/app/save.py:7 save");
  }
  SECTION("if it stops to write, it is named soon") {
    job.ranks[0].io_rate = 0;
    job.run(120);
    CHECK(job.suspects() == std::vector<std::int32_t>{0});
    CHECK_FALSE(job.watch->verdict().suspects.at(0).is_busy);
  }
}

TEST_CASE("steps that take long are no stall once one of them was seen") {
  Job job(2);
  for (Process& process : job.ranks) process.gap = 400;
  job.run(100);
  job.stop({"/app/train.py:70 main"});
  job.run(1150);
  CHECK(phases(job).count("Stalled") == 0);
  job.run(200);
  CHECK(name_of(job.watch->verdict().phase) == "Stalled");
}

TEST_CASE("a first step may take as long as the limit of the start") {
  Job job(4);
  job.stop({"/app/compile.py:3 build"});
  for (Process& process : job.ranks) process.seq = 0;
  job.run(1190);
  CHECK(phases(job).count("Stalled") == 0);
  job.train();
  job.run(60);
  CHECK(name_of(job.watch->verdict().phase) == "Running");
  check_no_name(job);
}

TEST_CASE("a job that is suspended is unknown, and has its threshold when it comes back") {
  Job job(4);
  job.run(100);
  for (Process& process : job.ranks) process.is_heard = false;
  job.run(4000);
  CHECK(name_of(job.watch->verdict().phase) == "Unknown");
  // The clock of frozen processes went on.
  for (Process& process : job.ranks) process.is_heard = true;
  job.stop(kAllReduce);
  job.run(280);
  CHECK(phases(job).count("Stalled") == 0);
  job.train();
  job.run(60);
  CHECK(name_of(job.watch->verdict().phase) == "Running");
  check_no_name(job);
}

TEST_CASE("a controller that starts again names no rank that it has not heard") {
  Job job(4);
  job.run(100);
  job.ranks[3].is_heard = false;
  job.restart_controller();
  job.run(1000);
  CHECK(name_of(job.watch->verdict().phase) == "Running");
  check_no_name(job);
  SECTION("in a stall it asks for stacks again, and names the rank") {
    job.ranks[3].seq = job.ranks[0].seq;  // it trained all the time
    job.stop(kAllReduce);
    job.ranks[3].is_heard = true;
    job.leave(1, kLoad);
    job.run(500);
    CHECK(job.suspects() == std::vector<std::int32_t>{1});
    job.restart_controller();
    job.run(30);
    CHECK(job.suspects().empty());
    job.run(120);
    CHECK(job.suspects() == std::vector<std::int32_t>{1});
  }
}

TEST_CASE("a job that counts no steps is never a stall while it does anything") {
  Job job(4);
  job.without_sequence();
  job.stop({"/app/jax_loop.py:9 step"});
  for (Process& process : job.ranks) process.cpu_rate = 0.9;
  job.run(20000);
  CHECK(phases(job) == std::set<std::string>{"Starting"});
  CHECK_FALSE(job.watch->progress_at());
  CHECK(job.watch->position().steps == 0);
}

TEST_CASE("one rank alone is no stall while it does anything") {
  Job job(1);
  job.run(100);
  // No other rank waits for it, whatever it calls.
  const Frames frames = GENERATE(Frames{"/app/validate.py:5 score"}, kBackward);
  job.stop(frames);
  SECTION("CPU") {
    job.ranks[0].cpu_rate = 0.8;
  }
  SECTION("a file") {
    job.ranks[0].io_rate = 5e6;
  }
  job.run(9'000);
  CHECK(phases(job) == std::set<std::string>{"Running"});
  job.ranks[0].cpu_rate = job.ranks[0].io_rate = 0;
  job.run(290);
  CHECK(phases(job).count("Stalled") == 0);
  job.run(100);
  CHECK(name_of(job.watch->verdict().phase) == "Stalled");
  job.ranks[0].cpu_rate = 0.8;
  job.run(60);
  CHECK(name_of(job.watch->verdict().phase) == "Running");
}

TEST_CASE("ranks that ended while one finishes its own work are no suspects") {
  Job job(4);
  job.run(100);
  job.stop(kSave);
  for (std::size_t i = 1; i < 4; ++i) job.ranks[i].says_bye = true;
  job.run(1000);
  CHECK(name_of(job.watch->verdict().phase) == "Stalled");
  check_no_name(job);
  job.ranks[0].says_bye = true;
  job.run(30);
  CHECK(name_of(job.watch->verdict().phase) == "Ended");
}

TEST_CASE("a rank that loses its heartbeats in a stall is not its cause") {
  Job job(4);
  job.run(100);
  job.stop(kAllReduce);
  job.leave(1, kLoad);
  job.run(250);
  job.ranks[2].is_heard = false;
  job.run(200);
  CHECK((job.suspects().empty() || job.suspects() == std::vector<std::int32_t>{1}));
  check_no_name(job);
}

TEST_CASE("a rank whose reporter ended long before is not the cause") {
  Job job(8);
  job.run(100);
  job.ranks[5].is_heard = false;
  job.run(1000);
  job.stop(kAllReduce);
  job.leave(1, kLoad);
  job.run(500);
  CHECK(name_of(job.watch->verdict().phase) == "Stalled");
  check_no_name(job);
}

TEST_CASE("most ranks of a job without numbers may be at fault only if others are fewer") {
  Job job(8);
  job.without_sequence();
  job.run(100);
  job.stop(kLoad);
  job.ranks[0].frames = kAllReduce;
  job.run(500);
  CHECK(name_of(job.watch->verdict().rule) == "Undecided");
  CHECK(job.watch->verdict().groups.at(0).count == 7);
}

TEST_CASE("stacks that do not come are not waited for") {
  Job job(4);
  job.run(100);
  job.stop(kAllReduce);
  job.leave(2, kLoad);
  job.ranks[1].never_dumps = true;
  SECTION("of one rank: the last line of its heartbeats counts") {
    job.run(400);
    CHECK(job.suspects() == std::vector<std::int32_t>{2});
  }
  SECTION("of most ranks") {
    job.ranks[0].never_dumps = job.ranks[2].never_dumps = true;
    job.run(400);
    CHECK(name_of(job.watch->verdict().rule) == "Undecided");
  }
}

}  // namespace
}  // namespace trainer::stall::test
