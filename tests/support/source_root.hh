#pragma once

#include <string>

namespace trainer::test {

// The folder of the sources, for tests that read files of the repository.
std::string source_root();

}  // namespace trainer::test
