#include "controller/process/memory.hh"

#include <malloc.h>

#include "controller/process/process_figures.hh"

namespace trainer {
namespace {

constexpr std::chrono::seconds kTrimInterval{20};
constexpr double kMuch = 16 * 1'024 * 1'024;  // bytes; less memory is soon used again

// Returns the resident bytes that are neither in use nor mapped from a file. Free memory that was
// given back is not resident.
double free_bytes() {
  const struct mallinfo2 heap = ::mallinfo2();
  return read_anonymous_bytes() - static_cast<double>(heap.uordblks + heap.hblkhd);
}

}  // namespace

void limit_kept_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 256 * 1'024);
  ::mallopt(M_TRIM_THRESHOLD, 4 * 1'024 * 1'024);
}

kube::Task<void> give_back_memory(kube::Clock& clock) {
  while (true) {
    co_await kube::sleep(clock, kTrimInterval);
    if (free_bytes() > kMuch) ::malloc_trim(0);
  }
}

}  // namespace trainer
