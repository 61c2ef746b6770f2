// Hangs that a probe injected into jobs of torch, and what is said of each.
#include <functional>

#include "tests/support/catch.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

const std::string kWorkerText =
    "Current thread 0x00007f (most recent call first):\n"
    "  File \"/app/dataset.py\", line 33 in __getitem__\n"
    "  File \"/x/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py\", line 309 in "
    "_worker_loop\n";
const std::string kRegexText =
    "Thread 0x00007e (most recent call first):\n"
    "  File \"/app/other.py\", line 1 in run\n\n"
    "Current thread 0x00007f (most recent call first):\n"
    "  File \"/usr/lib/python3.11/re/__init__.py\", line 166 in match\n"
    "  File \"/app/clean.py\", line 12 in clean\n";

struct Hang {
  std::string name;
  std::function<void(Job&)> inject;
  Rule rule;
  Rule rule_without_sequence;
  std::vector<std::int32_t> suspects;
  std::string line, where;
};

const std::vector<Hang>& hangs() {
  static const std::vector<Hang> kHangs{
      {"the loader sleeps",
       [](Job& job) { job.leave(2, kLoad); },
       Rule::kBehind,
       Rule::kNotWaiting,
       {2},
       "/app/data.py:5 read",
       ""},
      {"a FIFO is read in a thread that is joined",
       [](Job& job) {
         job.leave(2, kJoin);
         job.ranks[2].threads = {
             {"idle", {"/usr/lib/python3.11/queue.py:180 get", "/app/a.py:1 f"}},
             {"reader", {"/app/fifo.py:8 read"}}};
       },
       Rule::kBehind,
       Rule::kNotWaiting,
       {2},
       "/app/fifo.py:8 read",
       "thread reader"},
      {"two locks",
       [](Job& job) {
         job.leave(1, {"/app/locks.py:20 second", "/app/train.py:61 main"});
       },
       Rule::kBehind,
       Rule::kNotWaiting,
       {1},
       "/app/locks.py:20 second",
       ""},
      {"a collective is skipped",
       [](Job& job) { job.ranks[3].frames = kBarrier; },
       Rule::kApart,
       Rule::kApart,
       {3},
       "/app/train.py:90 main",
       ""},
      {"SIGSTOP",
       [](Job& job) {
         job.ranks[1].is_heard = false;
         job.ranks[1].state = "T";
       },
       Rule::kStopped,
       Rule::kStopped,
       {1},
       "/app/train.py:81 main",
       "last seen"},
      {"a debugger",
       [](Job& job) {
         job.ranks[1].is_heard = false;
         job.ranks[1].state = "t";
       },
       Rule::kStopped,
       Rule::kStopped,
       {1},
       "/app/train.py:81 main",
       "last seen"},
      {"a regular expression holds the GIL",
       [](Job& job) {
         job.ranks[2].is_heard = false;
         job.ranks[2].state = "R";
         job.ranks[2].agent_text = kRegexText;
       },
       Rule::kSilent,
       Rule::kSilent,
       {2},
       "/app/clean.py:12 clean",
       "by signal"},
      {"the worker of a loader hangs",
       [](Job& job) {
         job.leave(0, kLoader);
         job.ranks[0].children = {{7, ""}, {8, kWorkerText}};
       },
       Rule::kBehind,
       Rule::kNotWaiting,
       {0},
       "/app/dataset.py:33 __getitem__",
       "worker process 8"},
      {"a rank crashed",
       [](Job& job) {
         job.ranks[3].is_heard = false;
         job.ranks[3].state = "gone";
       },
       Rule::kEnded,
       Rule::kEnded,
       {3},
       "/app/train.py:81 main",
       "last seen"},
      {"a rank is a zombie",
       [](Job& job) {
         job.ranks[3].is_heard = false;
         job.ranks[3].state = "Z";
       },
       Rule::kEnded,
       Rule::kEnded,
       {3},
       "/app/train.py:81 main",
       "last seen"},
      {"a rank ended by itself",
       [](Job& job) {
         job.leave(3, {});
         job.ranks[3].says_bye = true;
       },
       Rule::kEnded,
       Rule::kEnded,
       {3},
       "",
       ""},
      {"a node is lost",
       [](Job& job) {
         job.ranks[2].is_heard = false;
         job.ranks[2].state = "D";
       },
       Rule::kSilent,
       Rule::kSilent,
       {2},
       "/app/train.py:81 main",
       "last seen"},
      {"the network is lost", [](Job&) {}, Rule::kSamePlace, Rule::kSamePlace, {}, "", ""},
  };
  return kHangs;
}

void check(const Hang& hang, Job& job, Rule rule) {
  const Verdict& verdict = job.watch->verdict();
  CHECK(name_of(verdict.phase) == "Stalled");
  CHECK(name_of(verdict.rule) == name_of(rule));
  CHECK(job.suspects() == hang.suspects);
  if (verdict.suspects.empty()) return;
  const Suspect& suspect = verdict.suspects.front();
  CHECK(suspect.line == hang.line);
  CHECK(suspect.where == hang.where);
  CHECK(suspect.pod == "job-node-" + std::to_string(suspect.rank));
  CHECK(suspect.node == "machine-" + std::to_string(suspect.rank));
  CHECK_FALSE(suspect.is_busy);
}

TEST_CASE("hangs name their rank and line") {
  for (const Hang& hang : hangs())
    for (const bool has_sequence : {true, false}) {
      INFO(hang.name << (has_sequence ? "" : ", without sequence numbers"));
      Job job(4);
      if (!has_sequence) job.without_sequence();
      job.add_agents();
      job.run(100);
      CHECK(name_of(job.watch->verdict().phase) == "Running");
      CHECK(job.watch->position().steps > 80);
      const SteadyTime hung_at = job.now;
      const std::vector<Process> training = job.ranks;
      job.stop(kAllReduce);
      hang.inject(job);
      // A process that is not heard any more was last seen in training.
      for (std::size_t i = 0; i < job.ranks.size(); ++i)
        if (!job.ranks[i].is_heard) job.ranks[i].frames = training[i].frames;
      job.run(250);
      CHECK(name_of(job.watch->verdict().phase) == "Running");
      job.run(40);
      CHECK(name_of(job.watch->verdict().phase) == "Stalling");
      job.run(110);
      check(hang, job, has_sequence ? hang.rule : hang.rule_without_sequence);
      const auto last = job.watch->progress_at();
      REQUIRE(last);
      CHECK(std::chrono::abs(*last - hung_at) < std::chrono::seconds(20));
      // A stall that lasts names the same rank, and ends with the first step.
      job.run(3000);
      check(hang, job, has_sequence ? hang.rule : hang.rule_without_sequence);
      for (Process& process : job.ranks) {
        process.is_heard = !process.says_bye;
        if (process.state != "gone") process.state = "S";
        if (process.is_heard) process.frames = kItem;
      }
      job.train();
      job.run(60);
      CHECK(name_of(job.watch->verdict().phase) == "Running");
      CHECK(job.watch->verdict().suspects.empty());
      CHECK(job.watch->stacks().get_array("ranks").empty());
    }
}

TEST_CASE("a deadlock of two ranks in different collectives is undecided without numbers") {
  Job job(2);
  job.without_sequence();
  job.run(100);
  job.stop(kAllReduce);
  job.ranks[1].frames = kBarrier;
  job.run(400);
  CHECK(name_of(job.watch->verdict().rule) == "Undecided");
  CHECK(job.watch->verdict().group_count == 2);
  CHECK(job.watch->verdict().waiting == 2);
}

TEST_CASE("the stacks of a stall are there for people") {
  Job job(4);
  job.run(100);
  job.stop(kAllReduce);
  job.leave(2, kLoad);
  job.run(400);
  const kube::Json stacks = job.watch->stacks();
  REQUIRE(stacks.get_array("ranks").size() == 4);
  const kube::Json& third = stacks.get_array("ranks")[2];
  CHECK(third.get_int("rank") == 2);
  CHECK(third.get_string("pod") == "job-node-2");
  CHECK(third.get_array("threads").at(0).get_array("frames").at(0) == "/app/data.py:5 read");
  const Verdict& verdict = job.watch->verdict();
  REQUIRE(verdict.groups.size() == 2);
  CHECK(verdict.groups[0].ranks == std::vector<std::int32_t>{0, 1, 3});
  CHECK(verdict.groups[0].line == "/app/train.py:80 main");
}

TEST_CASE("ranks that never report are named only after the limit of the start") {
  Job job(4);
  job.without_sequence();
  job.stop(kBarrier);
  job.ranks[3].is_heard = false;
  job.run(1195);
  CHECK(name_of(job.watch->verdict().phase) == "Stalling");
  CHECK(job.watch->verdict().missing == std::vector<std::int32_t>{3});
  job.run(120);
  CHECK(name_of(job.watch->verdict().rule) == "NeverReported");
  CHECK(job.suspects() == std::vector<std::int32_t>{3});
}

}  // namespace
}  // namespace trainer::stall::test
