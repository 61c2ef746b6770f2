#include "controller/cli/cli.hh"

int main(int argc, char** argv) {
  return trainer::run_cli(argc, argv);
}
