// The V1 kind of docs/adding-a-kind.md: workers that know their rank.
#pragma once

#include "runtimes/v1/framework.hh"

namespace sample {

extern const trainer::v1::Framework kExampleJob;

}  // namespace sample
