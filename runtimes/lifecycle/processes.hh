// This file computes how many processes a training has, if that follows from what users write.
// Every number of processes in a variable, a hostfile or a script is made here. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace trainer {

// Linux runs no more processes on one machine (PID_MAX_LIMIT).
inline constexpr std::int64_t kMaxProcessesOfNode = std::int64_t{1} << 22;
// torchrun, MPI, Flux and XGBoost keep ranks, and their number, in 32 bits.
inline constexpr std::int64_t kMaxProcesses = std::numeric_limits<std::int32_t>::max();

// Returns the nearest number from 1 to kMaxProcesses.
std::int32_t process_count(std::int64_t number);
// Returns the same for all nodes together.
std::int32_t process_count(std::int64_t nodes, std::int64_t of_node);

// Returns why a new job with so many processes is refused, and how to change it; "" if it is not
// refused. Stored jobs keep what they have.
std::string refusal_of_processes(std::int64_t nodes, std::int64_t of_node);

}  // namespace trainer
