// The metrics process_* are memory, processor time and descriptors of this process, by the kernel's
// counts.
#pragma once

namespace trainer {

// A value is 0 if /proc does not have it.
struct ProcessFigures {
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double memory_limit_bytes = 0;  // the limit of the container, at the start; 0: none
  double cpu_seconds = 0;         // user and system, of all threads
  double start_seconds = 0;       // seconds since 1970
  double open_descriptors = 0;
  double max_descriptors = 0;
};

ProcessFigures read_process_figures();

// Returns resident memory that no file holds; 0 if /proc does not have it.
double read_anonymous_bytes();

}  // namespace trainer
