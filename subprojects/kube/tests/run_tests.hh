// The main() of test programs: a test that asserts nothing does not pass.
#pragma once

#include <string>

namespace kube::test {

// Runs the test cases that the command line names. Beside the faults that Catch2 finds, the program
// fails if a run of a case (one for each section and generated value) ends without an assertion.
int run_tests(int argc, char** argv);

// The current run of the test case needs something that this machine is known not to have, so it
// ends without an assertion. If nothing of a case was tried, it is printed as `not tried: CASE:
// WHY`, and tools/meson-tests does not count it as passed.
void set_not_tried(std::string why);

}  // namespace kube::test
