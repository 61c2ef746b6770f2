// The test framework's header.
#pragma once

#include "kube/tests/catch.hh"
