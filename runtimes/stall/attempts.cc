// An attempt of a job ends: its processes are replaced.
#include <algorithm>

#include "runtimes/stall/watch.hh"

namespace trainer::stall {

// torchrun of each node counts the restarts of its own ranks, so those that run together differ.
void Watch::note_end(Attempt next) {
  std::int64_t steps = -1;
  std::int64_t batches = -1;
  ended_.clear();
  for (const auto& [number, rank] : ranks_) {
    if (!rank.has_reported) continue;
    steps = std::max(steps, rank.steps);
    batches = std::max(batches, rank.batches);
    // One that has taken the place of another may be of the time that begins.
    if (rank.replaced.front() == 0) ended_.push_back(digest_of(rank.sender, rank.process));
  }
  std::sort(ended_.begin(), ended_.end());
  loop_.note(attempt_, next, steps, batches);
}

}  // namespace trainer::stall
