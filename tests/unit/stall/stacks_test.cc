// The line of a rank, and whether it waits, from its frames.
#include "runtimes/stall/stacks.hh"

#include "tests/support/catch.hh"
#include "tests/unit/stall/job.hh"

namespace trainer::stall::test {
namespace {

#define PACKAGES "/x/lib/python3.11/site-packages"

Stacks stacks_of(Frames frames) {
  Stacks stacks;
  Thread main;
  main.is_main = true;
  main.frames = std::move(frames);
  stacks.threads.push_back(std::move(main));
  return stacks;
}

struct StackRow {
  Frames frames;
  std::string line;
  Wait wait;
};

TEST_CASE("the innermost user line of a stack") {
  const std::vector<StackRow> rows{
      {{}, "", Wait::kUnknown},
      {kAllReduce, "/app/train.py:80 main", Wait::kWaiting},
      {kBackward, "/app/train.py:70 main", Wait::kWaiting},
      {kLoad, "/app/data.py:5 read", Wait::kAway},
      {kSave, "/app/save.py:7 save", Wait::kAway},
      {{"<frozen importlib._bootstrap>:1 f", "/app/a.py:1 main"}, "/app/a.py:1 main", Wait::kAway},
      {{"<frozen runpy>:88 _run_code"}, "<frozen runpy>:88 _run_code", Wait::kAway},
      // A package is the user's choice, torch is not.
      {{PACKAGES "/transformers/trainer.py:9 step", "/app/a.py:1 main"},
       PACKAGES "/transformers/trainer.py:9 step",
       Wait::kAway},
      // A hook of the user runs inside the backward pass.
      {{"/app/hook.py:3 hook", PACKAGES "/torch/autograd/__init__.py:97 backward",
        "/app/a.py:1 main"},
       "/app/hook.py:3 hook",
       Wait::kAway},
      {{PACKAGES "/torch/cuda/__init__.py:700 synchronize", "/app/a.py:1 main"},
       "/app/a.py:1 main",
       Wait::kWaiting},
      {{PACKAGES "/torch/cuda/__init__.py:700 empty_cache", "/app/a.py:1 main"},
       "/app/a.py:1 main",
       Wait::kAway},
      // A checkpoint of torch writes; it waits only in the collectives that it calls.
      {{PACKAGES "/torch/distributed/checkpoint/filesystem.py:5 write", "/app/a.py:1 main"},
       "/app/a.py:1 main",
       Wait::kAway},
      {{PACKAGES "/torch/distributed/distributed_c10d.py:5 gather_object",
        PACKAGES "/torch/distributed/checkpoint/utils.py:5 reduce", "/app/a.py:1 main"},
       "/app/a.py:1 main",
       Wait::kWaiting},
      // The reporter wraps the optimizer's step.
      {{"/opt/trainer_reporter.py:5 step", PACKAGES "/torch/optim/adam.py:5 step",
        "/app/a.py:1 main"},
       "/app/a.py:1 main",
       Wait::kAway}};
  for (const StackRow& row : rows) {
    INFO((row.frames.empty() ? "no frames" : row.frames.front()));
    const Summary summary = summary_of(stacks_of(row.frames));
    CHECK(summary.line == row.line);
    CHECK(static_cast<int>(summary.wait) == static_cast<int>(row.wait));
  }
  CHECK(summary_of({}).line.empty());
}

TEST_CASE("the last lines of a heartbeat say whether a rank waits only if nothing is between") {
  CHECK(wait_of("", "") == Wait::kUnknown);
  CHECK(wait_of("/app/a.py:1 main", kAllReduce.front()) == Wait::kWaiting);
  CHECK(wait_of("/app/a.py:1 main", "/app/a.py:1 main") == Wait::kAway);
  CHECK(wait_of("/app/a.py:1 main", PACKAGES "/torch/_tensor.py:9 f") == Wait::kUnknown);
}

TEST_CASE("a worker or thread that the main thread awaits") {
  Stacks stacks = stacks_of(kLoader);
  CHECK(summary_of(stacks).helper.empty());
  stacks.children.push_back({9, "python", "S", "", "no stack"});
  stacks.children.push_back({10, "python", "S", "",
                             "Thread 0x1 (most recent call first):\n  File \"" PACKAGES
                             "/torch/utils/data/_utils/worker.py\", line 5 in _worker_loop\n"});
  CHECK(summary_of(stacks).where == "worker process 10");
  CHECK(summary_of(stacks).helper == PACKAGES "/torch/utils/data/_utils/worker.py:5 _worker_loop");
  Stacks waiting = stacks_of(kAllReduce);
  waiting.children = stacks.children;
  CHECK(summary_of(waiting).helper.empty());
}

TEST_CASE("processes that Python itself starts are no workers") {
  Stacks stacks = stacks_of(
      {"/usr/lib/python3.11/multiprocessing/connection.py:399 wait", "/app/train.py:66 main"});
  const auto add = [&stacks](std::int64_t pid, const std::string& frames) {
    stacks.children.push_back(
        {pid, "python", "S", "", "Current thread 0x1 (most recent call first):\n" + frames});
  };
  const std::string command = "  File \"<string>\", line 1 in <module>\n";
  add(8, "  File \"/usr/lib/python3.11/multiprocessing/resource_tracker.py\", line 209 in main\n" +
             command);
  CHECK(summary_of(stacks).where.empty());
  add(9,
      "  File \"/app/data.py\", line 5 in read\n"
      "  File \"/usr/lib/python3.11/multiprocessing/spawn.py\", line 122 in spawn_main\n" +
          command);
  CHECK(summary_of(stacks).where == "worker process 9");
  CHECK(summary_of(stacks).helper == "/app/data.py:5 read");
}

TEST_CASE("texts of faulthandler") {
  CHECK(line_by_signal("").empty());
  CHECK(line_by_signal("  File \"/app/a.py\", line 1 in f").empty());
  CHECK(line_by_signal("Thread 0x1\n  File \"/app/a.py\", line 1 in f") == "/app/a.py:1 f");
  CHECK(
      line_by_signal("Stack (most recent call first):\n  File \"/app/a \", line.py\", line ??? in "
                     "<module>") == "/app/a \", line.py:??? <module>");
  CHECK(line_by_signal("Thread 0x1\n  File \"/app/a.py\", line 1 in f\nCurrent thread 0x2\n"
                       "  File \"/app/b.py\", line 2 in g") == "/app/b.py:2 g");
  for (const char* const bad : {"Thread 0x1\n  File \"", "Thread 0x1\n  File \", line ",
                                "Thread 0x1\n  File \"a\", line 1", "Current thread 0x\n\n\n"})
    CHECK(line_by_signal(bad).empty());
}

}  // namespace
}  // namespace trainer::stall::test
