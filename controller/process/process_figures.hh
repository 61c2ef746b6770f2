// Memory, processor time and descriptors of this process, as the kernel counts them, for the
// metrics process_*.
#pragma once

namespace trainer {

// 0 where /proc does not say it.
struct ProcessFigures {
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double memory_limit_bytes = 0;  // of the container, at the start; 0: none
  double cpu_seconds = 0;         // user and system, of all threads
  double start_seconds = 0;       // since 1970
  double open_descriptors = 0;
  double max_descriptors = 0;
};

ProcessFigures read_process_figures();

// Resident memory that no file holds; 0 where /proc does not say it.
double read_anonymous_bytes();

}  // namespace trainer
