#include "tests/support/source_root.hh"

namespace trainer::test {

std::string source_root() {
  return SOURCE_ROOT;
}

}  // namespace trainer::test
