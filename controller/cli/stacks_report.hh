// The saved stacks of a stall, as `trainer why --stacks` prints them. Pure.
#pragma once

#include <string>

#include "kube/model/json.hh"

namespace trainer {

// `stacks` is what stall::read_compressed_stacks() returns. The text of pods is made safe for a
// terminal.
std::string stacks_text(const kube::Json& stacks);

}  // namespace trainer
