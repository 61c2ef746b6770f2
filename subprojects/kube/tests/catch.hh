// No other file names the test framework's header, so that its next major version is a change of
// one file.
#pragma once

#include <catch2/catch.hpp>
