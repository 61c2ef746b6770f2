// How many files and connections this process may have open.
#pragma once

namespace trainer {

// Raises the soft limit of open descriptors to the hard limit, as a Go program does at its start.
// (The soft limit is low only for programs that use select().) False where the system refuses.
bool raise_descriptor_limit();

}  // namespace trainer
