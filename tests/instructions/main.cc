// instructions FIGURE TIMES: does one thing that many times. tests/instructions/run counts the
// instructions.
#include <cstdlib>
#include <map>
#include <string>

#include "tests/instructions/figures.hh"
#include "tests/instructions/objects.hh"

int main(int argc, char** argv) {
  using namespace trainer::instructions;
  const std::map<std::string, void (*)(int)> figures = {
      {"plan_trainjob_new", plan_trainjob_new},
      {"plan_trainjob_running", plan_trainjob_running},
      {"plan_jobset_new", plan_jobset_new},
      {"plan_jobset_running", plan_jobset_running},
      {"watch_pod", watch_pod},
      {"watch_job", watch_job},
      {"watch_jobset", watch_jobset},
      {"watch_trainjob", watch_trainjob},
      {"reconcile_jobset", reconcile_jobset},
      {"reconcile_trainjob", reconcile_trainjob},
      {"reconcile_after_pod", reconcile_after_pod},
  };
  const auto figure = figures.find(argc == 3 ? argv[1] : "");
  if (figure == figures.end()) fail("usage: instructions FIGURE TIMES");
  figure->second(std::atoi(argv[2]));
}
