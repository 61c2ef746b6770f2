#define CATCH_CONFIG_MAIN
#include "kube/tests/catch.hh"
