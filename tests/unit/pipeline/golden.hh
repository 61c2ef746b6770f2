// Golden files: output kept in the tree, so that a change of it is seen and reviewed like code.
#pragma once

#include <string>

namespace trainer::test {

// Fails unless the file (a path in the source tree) holds exactly `text`. With ACCEPT=1 in the
// environment the file is written instead, and the test fails all the same: the accepted text must
// be read, and the run without ACCEPT must pass.
void check_golden(const std::string& path, const std::string& text);

}  // namespace trainer::test
