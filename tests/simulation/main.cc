// Seeded simulation of both reconcilers against a model of the API server.
//
//   simulation [--runs N] [--seed S] [--jobs N] [--trace]
//
// Runs the seeds S, S+1, ... S+N-1. Every fiftieth seed is run twice and must repeat itself.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/simulation/simulation.hh"

namespace {

using trainer::simulation::simulate;
using trainer::simulation::Verdict;

constexpr std::uint64_t kReplayEvery = 50;
constexpr int kMostReports = 10;

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

// Every `stride`th seed from `first` on. Answers how many failed, 255 at most.
int run_share(const Options& options, std::uint64_t first, std::uint64_t stride) {
  int failed = 0;
  for (std::uint64_t i = first; i < options.runs; i += stride) {
    if (is_good(options.seed + i, options.is_traced)) continue;
    if (++failed == kMostReports) break;
  }
  return failed;
}

// Processes, not threads: a run that crashes takes only its own share with it.
int run_all(const Options& options) {
  if (options.jobs < 2 || options.runs < 2) return run_share(options, 0, 1);
  std::vector<pid_t> children;
  for (unsigned i = 0; i < options.jobs; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const int failed = run_share(options, i, options.jobs);
      std::fflush(stdout);
      _exit(failed);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (!WIFEXITED(status)) fmt::print("a share of the runs died of signal {}\n", WTERMSIG(status));
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Seeded simulation of both reconcilers against a model of the API server.");
  app.add_option("--runs", options.runs, "how many seeds");
  app.add_option("--seed", options.seed, "the first of them");
  app.add_option("--jobs", options.jobs, "how many at a time");
  app.add_flag("--trace", options.is_traced, "tell everything that happens");
  CLI11_PARSE(app, argc, argv);
  const int failed = run_all(options);
  fmt::print("{} passed, {} failed\n", options.runs - static_cast<std::uint64_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}
