#include "controller/cli/stacks_report.hh"

#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("stacks are printed by rank, thread and process, safe for a terminal") {
  const auto stacks = kube::parse_json(R"({"ranks": [
    {"rank": 5, "pod": "p", "node": "m", "waiting": false,
     "threads": [{"name": "MainThread", "main": true, "state": "S", "wchan": "futex_wait",
                  "frames": ["/app/data.py:41 read_shard", "/app/train.py:88 main"]},
                 {"name": "pin\u001b[2J", "main": false, "state": "R", "wchan": "0", "frames": []}],
     "children": [{"pid": 71, "command": "python", "state": "D", "wchan": "",
                   "text": "Thread 0x7f (most recent call first):\n  File \"a.py\", line 3 in f\n"}]},
    {"rank": 0, "pod": "q", "node": "n", "waiting": true, "threads": [], "children": []}],
    "leftOut": 6})");
  REQUIRE(stacks);
  CHECK(stacks_text(*stacks) ==
        "rank 5 (pod p, node m)\n"
        "  MainThread (S, futex_wait)\n"
        "    /app/data.py:41 read_shard\n"
        "    /app/train.py:88 main\n"
        "  thread pin\\x1b[2J (R)\n"
        "    no Python frame\n"
        "  process 71 python (D)\n"
        "    Thread 0x7f (most recent call first):\n"
        "      File \"a.py\", line 3 in f\n"
        "\n"
        "rank 0 (pod q, node n), waits for others\n"
        "\n"
        "There was no room for the stacks of 6 more ranks.\n");
}

TEST_CASE("stacks of another form are no crash") {
  for (const char* text : {"{}", "[]", R"({"ranks": 3})", R"({"ranks": [1, null, {"threads": 1}]})",
                           R"({"ranks": [{"threads": [1, {"frames": [3]}]}], "leftOut": "x"})"}) {
    INFO(text);
    const auto stacks = kube::parse_json(text);
    REQUIRE(stacks);
    CHECK(stacks_text(*stacks).size() < 200);
  }
}
