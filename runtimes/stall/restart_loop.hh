// Processes of a job that are started again and again, and come no further. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtimes/stall/heartbeats.hh"

namespace trainer::stall {

class RestartLoop {
 public:
  // The ranks of attempt `from`, which made `steps` and `batches` (-1: unknown), are replaced by
  // those of `to`. Ranks that nothing was heard of come between the two if `to` is not the next.
  void note(Attempt from, Attempt to, std::int64_t steps, std::int64_t batches) {
    const bool is_known = from.first == to.first && from < to && (steps >= 0 || batches >= 0);
    const bool is_same = repeats_ > 0 && steps == steps_ && batches == batches_;
    repeats_ = !is_known ? 0 : is_same && to.second == from.second + 1 ? repeats_ + 1 : 1;
    steps_ = steps;
    batches_ = batches;
  }

  // The restarts in a row, within one attempt of the JobSet, at the same step and batch.
  std::int32_t repeats() const { return repeats_; }
  std::int64_t steps() const { return std::max<std::int64_t>(steps_, 0); }  // those of the last one

 private:
  std::int32_t repeats_ = 0;
  std::int64_t steps_ = -1;
  std::int64_t batches_ = -1;
};

}  // namespace trainer::stall
