// Messages of several processes, attempts and pods: one of them counts for each rank.
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

using std::chrono::seconds;

// Sends one message of a process, and returns whether it was answered.
bool say(Job& job, Process& process) {
  const auto answer = job.watch->take(job.message_of(process), process.sender, job.now);
  ++process.sent;
  return answer.has_value();
}

std::int64_t steps_after(Job& job, Process& process, std::int64_t steps) {
  process.steps = steps;
  CHECK(say(job, process));
  return job.watch->position().steps;
}

TEST_CASE("reports of a higher attempt replace all of a lower one") {
  Job job(2);
  CHECK(steps_after(job, job.ranks[0], 50) == 50);
  job.attempt = "1";
  CHECK(steps_after(job, job.ranks[0], 3) == 3);
  job.restart = "2";
  CHECK(steps_after(job, job.ranks[0], 2) == 2);
  job.attempt = "";
  CHECK(steps_after(job, job.ranks[0], 90) == 2);
  job.attempt = "1";
  // torchrun of another node has restarted its ranks less often.
  job.restart = "1";
  CHECK(steps_after(job, job.ranks[1], 4) == 4);
  job.attempt = "2";
  job.restart = "";
  CHECK(steps_after(job, job.ranks[1], 1) == 1);
}

TEST_CASE("other pods after a silence begin from nothing, as after a suspension") {
  Job job(2);
  CHECK(steps_after(job, job.ranks[0], 50) == 50);
  job.now += seconds(600);
  CHECK(steps_after(job, job.ranks[0], 51) == 51);
  job.now += seconds(600);
  job.ranks[0].sender.uid += "-next";
  CHECK(steps_after(job, job.ranks[0], 2) == 2);
}

// All ranks go on as new processes. Those of `counted` nodes report a restart more.
void restart(Job& job, std::vector<int>& counts, const std::set<std::size_t>& counted) {
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    job.ranks[i].born += "+";
    job.ranks[i].sent = 0;
    if (counted.contains(i)) ++counts[i];
  }
}

std::int64_t steps_after_restarts(Job& job, std::size_t rank, int restarts, std::int64_t steps) {
  job.restart = std::to_string(restarts);
  return steps_after(job, job.ranks[rank], steps);
}

TEST_CASE("nodes that count their process restarts differently are one attempt") {
  Job job(3);
  std::vector<int> counts = {0, 0, 0};
  for (std::size_t i : {0U, 1U, 2U}) steps_after_restarts(job, i, 0, 50);
  const std::vector<Process> old = job.ranks;
  restart(job, counts, {2});
  // The new process of rank 0 comes before that of the rank that died, and the old one of rank 1
  // after it.
  CHECK(steps_after_restarts(job, 0, counts[0], 51) == 51);
  CHECK(steps_after_restarts(job, 2, counts[2], 1) == 1);
  Process late = old[1];
  ++late.sent;
  CHECK(steps_after_restarts(job, 1, 0, 1) == 1);
  job.restart = "0";
  CHECK(steps_after(job, late, 60) == 1);
  CHECK(steps_after_restarts(job, 0, counts[0], 3) == 3);
  CHECK(job.watch->attempt() == Attempt(0, 1));
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().missing_count == 0);
  // Another node's first restart shows nothing new, and no rank is lost by it.
  restart(job, counts, {1});
  for (std::size_t i : {0U, 1U, 2U}) CHECK(steps_after_restarts(job, i, counts[i], 4) == 4);
  CHECK(job.watch->attempt() == Attempt(0, 1));
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().missing_count == 0);
}

// Begins the ranks again as those of `world`, without a count of torchrun.
void resize(Job& job, std::int32_t world) {
  job.world = world;
  for (Process& process : job.ranks) {
    process.born = fmt::format("{}-100", world * 1000);
    process.sent = 0;
  }
}

TEST_CASE("a node that comes begins a new time, which torchrun does not count") {
  Job job(3);
  job.world = 2;
  for (std::size_t i : {0U, 1U}) job.ranks[i].born = "10-100";
  for (std::size_t i : {0U, 1U}) CHECK(steps_after(job, job.ranks[i], 50) == 50);
  const std::vector<Process> old = job.ranks;
  resize(job, 3);
  // The new node's rank comes first; nothing says yet that the others are new, too.
  CHECK(steps_after(job, job.ranks[2], 0) == 50);
  CHECK(job.watch->resizes() == 0);
  CHECK(steps_after(job, job.ranks[0], 1) == 1);
  CHECK(job.watch->resizes() == 1);
  CHECK(job.watch->previous_position().steps == 50);
  // A late message of an older process brings nothing back.
  Process late = old[1];
  job.world = 2;
  CHECK(steps_after(job, late, 51) == 1);
  CHECK(job.watch->resizes() == 1);
  job.world = 3;
  for (std::size_t i : {1U, 2U}) CHECK(steps_after(job, job.ranks[i], 2) == 2);
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().missing_count == 0);
  CHECK(job.watch->verdict().world == 3);
  CHECK(job.watch->attempt() == Attempt(0, 0));
}

TEST_CASE("ranks that go on after a torchrun of one of them are believed again") {
  Job job(4, {}, 4);
  for (Process& process : job.ranks) {
    process.born = "10-100";
    CHECK(steps_after(job, process, 50) == 50);
  }
  Process evaluation = job.ranks[1];
  evaluation.born = "20-200";
  job.world = 2;
  CHECK(steps_after(job, evaluation, 0) == 0);
  job.world = 4;
  for (Process& process : job.ranks) CHECK(steps_after(job, process, 51) == 0);
  job.now += seconds(70);
  for (Process& process : job.ranks) CHECK(steps_after(job, process, 52) == 52);
  job.world = 2;
  CHECK(steps_after(job, evaluation, 1) == 52);
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().world == 4);
  CHECK(job.watch->verdict().missing_count == 0);
  CHECK(job.watch->resizes() == 1);
}

TEST_CASE("a number of ranks that is wrong, or of an older process, begins no new time") {
  struct Row {
    std::string born;
    std::string uid;
    std::int32_t world;
  };
  const Row rows[] = {{"20-100", "", 2}, {"5-100", "", 3}, {"20-100", "other", 3}, {"b2", "", 3}};
  for (const Row& row : rows) {
    INFO(row.born << " of a pod " << row.uid << " in a world of " << row.world);
    Job job(2);
    job.ranks[0].born = "10-100";
    CHECK(steps_after(job, job.ranks[0], 50) == 50);
    job.world = row.world;
    job.ranks[0].born = row.born;
    job.ranks[0].sender.uid += row.uid;
    CHECK(steps_after(job, job.ranks[0], 1) == 50);
    CHECK(job.watch->resizes() == 0);
  }
}

TEST_CASE("restarts in a row at one step are counted") {
  struct Row {
    std::vector<std::int64_t> steps;  // each process in turn makes these
    std::int32_t repeats;
  };
  const Row rows[] = {{{7}, 0},          {{7, 0}, 1},       {{7, 7, 0}, 2},       {{7, 7, 7, 0}, 3},
                      {{0, 0, 0, 9}, 3}, {{7, 7, 9, 0}, 1}, {{-1, -1, -1, -1}, 0}};
  for (const Row& row : rows) {
    Job job(2);
    INFO(row.steps.size() << " processes, " << row.repeats << " repeats");
    std::vector<int> counts = {0, 0};
    for (const std::int64_t steps : row.steps) {
      for (Process& process : job.ranks) process.batches = steps;
      for (std::size_t i : {0U, 1U}) steps_after_restarts(job, i, counts[i], steps);
      restart(job, counts, {0, 1});
    }
    CHECK(job.watch->loop().repeats() == row.repeats);
  }
  // Restarts that nothing was heard of may have come further.
  Job job(1);
  for (const int restarts : {0, 1, 3, 4}) {
    job.ranks[0].born += "+";
    steps_after_restarts(job, 0, restarts, 7);
  }
  CHECK(job.watch->loop().repeats() == 2);
  job.attempt = "1";
  steps_after_restarts(job, 0, 0, 7);
  CHECK(job.watch->loop().repeats() == 0);
}

TEST_CASE("a message that is repeated or late is ignored") {
  Job job(1);
  Process& process = job.ranks[0];
  process.sent = 7;
  CHECK(steps_after(job, process, 5) == 5);
  process.sent = 7;
  CHECK(steps_after(job, process, 9) == 5);
  process.sent = 6;
  CHECK(steps_after(job, process, 9) == 5);
  process.sent = 8;
  CHECK(steps_after(job, process, 6) == 6);
}

TEST_CASE("of two processes of one pod the younger counts, and the older does not come back") {
  Job job(1);
  Process younger = job.ranks[0];
  younger.born = "b2";
  CHECK(steps_after(job, job.ranks[0], 5) == 5);
  CHECK(steps_after(job, younger, 7) == 7);
  CHECK(steps_after(job, job.ranks[0], 99) == 7);
  job.now += seconds(1000);
  CHECK(steps_after(job, job.ranks[0], 99) == 7);
  CHECK(steps_after(job, younger, 8) == 8);
}

TEST_CASE("a process of another pod counts only if the first is silent") {
  Job job(1);
  Process other = job.ranks[0];
  other.sender = {"job-node-9", "uid-9", "machine-9"};
  CHECK(steps_after(job, job.ranks[0], 5) == 5);
  CHECK(steps_after(job, other, 7) == 5);
  job.now += seconds(54);
  CHECK(steps_after(job, other, 7) == 5);
  job.now += seconds(2);
  CHECK(steps_after(job, other, 7) == 7);
  CHECK(steps_after(job, job.ranks[0], 9) == 7);
}

TEST_CASE("the youngest process says how many ranks there are") {
  Job job(4);
  for (Process& process : job.ranks) CHECK(say(job, process));
  job.now += seconds(1);
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().world == 4);
  job.world = 2;
  job.ranks[0].born = "b2";
  CHECK(say(job, job.ranks[0]));
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().world == 2);
  job.world = 4;
  CHECK(say(job, job.ranks[3]));
  job.watch->decide(job.now);
  CHECK(job.watch->verdict().world == 2);
}

TEST_CASE("an agent speaks only of the processes that it started") {
  Job job(4);
  job.run(100);
  job.stop(kAllReduce);
  job.ranks[2].state = "T";
  job.run(300);
  const auto stopped_by = [&job](std::string pod, Sender sender, std::string born) {
    job.ranks[2].born = std::move(born);
    const kube::Json agent = job.agent_of(pod, false);
    CHECK(job.watch->take(agent, sender, job.now));
    job.now += seconds(1);
    job.watch->decide(job.now);
    return job.watch->verdict().rule == Rule::kStopped;
  };
  job.ranks[2].is_heard = false;
  job.run(40);
  CHECK_FALSE(stopped_by("job-node-2", job.ranks[1].sender, "b1"));
  CHECK_FALSE(stopped_by("job-node-2", job.ranks[2].sender, "b0"));
}

TEST_CASE("an agent's word is overtaken by a heartbeat, and grows old") {
  Job job(2);
  job.add_agents();
  job.run(100);
  job.stop(kAllReduce);
  job.ranks[1].state = "T";  // for a moment, as a profiler does it
  job.run(400);
  CHECK(name_of(job.watch->verdict().rule) == "SamePlace");
}

TEST_CASE("stacks are asked for in a stall only, with a new id each four periods") {
  Job job(2);
  job.run(300);
  const auto asked = [&job] {
    const auto answer = job.watch->take(job.message_of(job.ranks[0]), job.ranks[0].sender, job.now);
    CHECK(answer->period == seconds(15));
    return answer->dump;
  };
  CHECK(asked().empty());
  job.stop(kAllReduce);
  job.run(240);
  CHECK(asked().empty());
  job.run(60);
  const std::string first = asked();
  CHECK_FALSE(first.empty());
  job.run(30);
  CHECK(asked() == first);
  job.run(40);
  CHECK(asked() != first);
  CHECK(asked().size() < 32);
}

TEST_CASE("stacks that nothing asked for are not kept") {
  Job job(2);
  job.run(100);
  const kube::Json message = job.message_of(job.ranks[0], "s1");
  CHECK(job.watch->take(message, job.ranks[0].sender, job.now));
  CHECK(job.watch->stacks().get_array("ranks").empty());
  job.stop(kAllReduce);
  job.run(400);
  job.ranks[0].sent += 10;
  const kube::Json later = job.message_of(job.ranks[0], "other");
  const std::size_t bytes = job.watch->bytes();
  CHECK(job.watch->take(later, job.ranks[0].sender, job.now));
  CHECK(job.watch->bytes() == bytes);
}

TEST_CASE("a change of the verdict is said once") {
  Job job(4);
  job.run(100);
  job.stop(kAllReduce);
  job.leave(2, kLoad);
  job.run(400);
  const int changes = job.changes;
  job.run(600);
  CHECK(job.changes == changes);
}

}  // namespace
}  // namespace trainer::stall::test
