#include "kube/tests/run_tests.hh"

int main(int argc, char** argv) {
  return kube::test::run_tests(argc, argv);
}
