// Freed memory is given back to the kernel.
#pragma once

#include "kube/client/clock.hh"
#include "kube/client/task.hh"

namespace trainer {

// Large objects are mapped one by one from now on, so that their memory is given back when they are
// freed. The allocator's own threshold grows with the first of them, and they fragment the heap
// from then on. Call it before other threads run.
void limit_kept_memory();

// Gives back, every 20 s, the memory that small objects have left free between others, if that is
// much. The allocator itself gives back only the end of a heap. Runs until it is cancelled.
kube::Task<void> give_back_memory(kube::Clock& clock);

}  // namespace trainer
