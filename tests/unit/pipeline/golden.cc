#include "tests/unit/pipeline/golden.hh"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"

namespace trainer::test {

void check_golden(const std::string& path, const std::string& text) {
  const std::string file = test::source_root() + "/" + path;
  std::ostringstream kept;
  kept << std::ifstream(file).rdbuf();
  if (kept.str() == text) return;
  if (const char* accept = std::getenv("ACCEPT"); accept != nullptr && std::string(accept) == "1") {
    std::ofstream(file) << text;
    FAIL_CHECK(path << " was written again: look at the difference, then run again without ACCEPT");
    return;
  }
  INFO("run with ACCEPT=1 to write it again");
  INFO(path);
  CHECK(kept.str() == text);
}

}  // namespace trainer::test
