// Seeded simulation of both reconcilers against a model of the API server.
//
//   simulation [--runs N] [--seed S] [--jobs N] [--trace]
//
// Runs the seeds S, S+1, ... S+N-1. Every fiftieth seed is run twice and must repeat itself.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/simulation/simulation.hh"

namespace {

using trainer::simulation::simulate;
using trainer::simulation::Verdict;

constexpr std::uint64_t kReplayEvery = 50;
constexpr std::uint64_t kMaxReports = 10;

struct Options {
  std::uint64_t runs = 500;
  std::uint64_t seed = 1;
  unsigned jobs = std::thread::hardware_concurrency();
  bool is_traced = false;
};

bool is_good(std::uint64_t seed, bool is_traced) {
  Verdict verdict = simulate(seed, is_traced);
  if (!verdict.violation && seed % kReplayEvery == 0 && !is_traced &&
      simulate(seed, false).digest != verdict.digest) {
    verdict.violation = "the second run of this seed went another way";
  }
  if (is_traced) {
    fmt::print("seed {}: {} virtual seconds, {} writes, {} crashes, digest {:016x}\n", seed,
               verdict.virtual_seconds, verdict.writes, verdict.crashes, verdict.digest);
  }
  if (!verdict.violation) return true;
  fmt::print("seed {}: {}\n    to see it happen: simulation --runs 1 --seed {} --trace\n", seed,
             *verdict.violation, seed);
  std::fflush(stdout);
  return false;
}

// This is the result of a share of the seeds, or of all of them.
struct Tally {
  std::uint64_t seed = 0;  // the one that was tried last
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
};

// Runs every `stride`th seed from `first` on, until so many have failed that more would be useless.
void run_share(const Options& options, std::uint64_t first, std::uint64_t stride, Tally& tally) {
  for (std::uint64_t i = first; i < options.runs && tally.failed < kMaxReports; i += stride) {
    tally.seed = options.seed + i;
    ++(is_good(tally.seed, options.is_traced) ? tally.passed : tally.failed);
  }
}

// Returns why a share cannot have come to its end, or "".
std::string untimely_end(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return std::strerror(errno);
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit status {}", WEXITSTATUS(status));
}

// These are processes, not threads: a run that crashes ends only its own share. Each process counts
// in memory that it shares with this one, so that its results before a crash are known, and the
// seed of the crash.
Tally run_side_by_side(const Options& options) {
  const std::size_t size = options.jobs * sizeof(Tally);
  void* const shared =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  auto* const tallies = new (shared) Tally[options.jobs];
  Tally all;
  std::vector<pid_t> children;
  for (unsigned i = 0; i < options.jobs; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      run_share(options, i, options.jobs, tallies[i]);
      std::fflush(stdout);
      _exit(0);
    }
    if (child == -1) {
      fmt::print("a share of the runs cannot be started: {}\n", std::strerror(errno));
      ++all.failed;
      break;
    }
    children.push_back(child);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string end = untimely_end(children[i]);
    if (!end.empty()) {
      fmt::print("a share of the runs ended at seed {}: {}\n", tallies[i].seed, end);
      ++all.failed;
    }
    all.passed += tallies[i].passed;
    all.failed += tallies[i].failed;
  }
  munmap(shared, size);
  return all;
}

Tally run_all(const Options& options) {
  if (options.jobs >= 2 && options.runs >= 2) return run_side_by_side(options);
  Tally all;
  run_share(options, 0, 1, all);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Seeded simulation of both reconcilers against a model of the API server.");
  app.add_option("--runs", options.runs, "how many seeds");
  app.add_option("--seed", options.seed, "the first of them");
  app.add_option("--jobs", options.jobs, "how many at a time");
  app.add_flag("--trace", options.is_traced, "print everything that happens");
  CLI11_PARSE(app, argc, argv);
  const Tally all = run_all(options);
  if (all.passed + all.failed < options.runs) {
    fmt::print("of {} seeds only {} were run\n", options.runs, all.passed + all.failed);
  }
  fmt::print("{} passed, {} failed\n", all.passed, all.failed);
  return all.failed == 0 && all.passed == options.runs && options.runs > 0 ? 0 : 1;
}
