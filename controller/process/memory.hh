// Memory that was freed is given back to the kernel.
#pragma once

#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace trainer {

// Large objects are mapped one by one from now on, so that they are given back when they go. The
// allocator's own threshold grows with the first of them, and they fragment the heap from then on.
// Call it before other threads run.
void limit_kept_memory();

// Gives back, every 20 s, what small objects have left free between others, where that is much.
// The allocator itself gives back the end of a heap alone. Runs until it is cancelled.
kube::Task<void> give_back_memory(kube::Clock& clock);

}  // namespace trainer
