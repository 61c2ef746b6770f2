// This replaces all other files of this folder if the build has no SQLite.
#include <iostream>

#include "controller/local/daemon.hh"

namespace trainer {

int run_daemon(const LocalOptions&) {
  std::cerr << "trainer local: this build has no local mode: build it with libsqlite3-dev and "
               "-Dlocal=enabled"
            << std::endl;
  return 1;
}

}  // namespace trainer
