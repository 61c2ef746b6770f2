#include "controller/cli/process_ends.hh"

#include "tests/support/catch.hh"

using namespace trainer;

namespace {

using Lines = std::vector<std::string>;

// Each line comes a second after the one before.
std::vector<ProcessEnd> read(std::string pod, const Lines& lines, int second = 0) {
  ProcessEndReader reader(std::move(pod));
  for (const std::string& text : lines)
    reader.take({"2026-11-29T10:00:" + std::to_string(10 + second++) + ".123Z", text});
  return std::move(reader).ends();
}

const std::string kOld =
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: "
    "17) of binary: /usr/bin/python3";
const std::string kNew =
    "E1129 10:00:00.000000 139 torch/distributed/elastic/multiprocessing/api.py:869] failed "
    "(exitcode: 3) local_rank: 1 (pid: 18) of binary: /opt/venv/bin/python";

}  // namespace

TEST_CASE("ends of processes are read from the lines of torchrun") {
  const auto ends = read("[node-2]", {"step 1", "step 2", "step 3", "step 4", "",
                                      "WARNING:torch.distributed.elastic.multiprocessing.api:"
                                      "Sending process 18 closing signal SIGTERM",
                                      kOld, "step 3", "Killed by us", kNew, "step 9"});
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].pod == "[node-2]");
  CHECK(ends[0].exit_code == -9);
  CHECK(ends[0].local_rank == 0);
  CHECK(ends[0].last_lines == Lines{"step 2", "step 3", "step 4"});
  CHECK(ends[1].exit_code == 3);
  CHECK(ends[1].local_rank == 1);
  CHECK(ends[1].last_lines == Lines{"step 3", "Killed by us"});
  CHECK(describe_ends(ends) ==
        Lines{"[node-2] the process of local rank 0 ended with signal 9 (SIGKILL) at "
              "2026-11-29T10:00:16Z; the last lines before it:\nstep 2\nstep 3\nstep 4",
              "[node-2] the process of local rank 1 ended with exit code 3 at "
              "2026-11-29T10:00:19Z; the last lines before it:\nstep 3\nKilled by us"});
}

TEST_CASE("lines that are only similar are output of the training") {
  const std::string torch = "ERROR:torch.distributed.elastic.multiprocessing.api:";
  for (const std::string& line :
       {torch + "failed (exitcode: ", torch + "failed (exitcode: 9",
        torch + "failed (exitcode: x) local_rank: 0 ", torch + "failed (exitcode: 1) rank: 0",
        torch + "failed (exitcode: 99999999999) local_rank: 0",
        torch + "failed (exitcode: 1) local_rank: one",
        std::string("failed (exitcode: 1) local_rank: 0")})
    CHECK(read("[node-0]", {line}).empty());
}

TEST_CASE("ends of several pods have the order of their times, and the latest are described") {
  auto ends = read("[node-1]", {kOld}, 5);
  for (auto& end : read("[node-0]", {kNew}, 4)) ends.push_back(std::move(end));
  const Lines two = describe_ends(ends);
  REQUIRE(two.size() == 2);
  CHECK(two[0].starts_with("[node-0] the process of local rank 1 ended with exit code 3"));
  CHECK(two[1].starts_with("[node-1] the process of local rank 0 ended with signal 9"));
  const Lines many = describe_ends(read("[node-0]", Lines(9, kNew)));
  REQUIRE(many.size() == 7);
  CHECK(many[0] == "3 earlier ends of processes");
  CHECK(many.back().find("10:00:18Z") != std::string::npos);
}

TEST_CASE("what a log holds bounds what is kept of it") {
  const auto ends = read("[node-0]", {std::string(1 << 20, 'x'), kOld});
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].last_lines[0].size() == 300);
  ProcessEndReader reader("[node-0]");
  for (int i = 0; i < 1000; ++i) reader.take({"", kNew});
  // A number that no signal has.
  const auto odd = read(
      "[node-0]", {"torch.distributed.x:failed (exitcode: -2147483648) local_rank: 0 (pid: 1)"});
  CHECK(describe_ends(odd).at(0).find("signal 2147483648 at") != std::string::npos);
  CHECK(std::move(reader).ends().size() == 256);
}
