#include "kube/tests/run_tests.hh"

#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#define CATCH_CONFIG_RUNNER
#include "kube/tests/catch.hh"

namespace kube::test {
namespace {

struct Runs {
  std::set<std::string> tried;                   // cases that have asserted something
  std::set<std::string> empty;                   // cases with a run that asserted nothing
  std::map<std::string, std::string> not_tried;  // case -> why
  std::optional<std::string> why_not;            // the reason of the current run
};

Runs& runs() {
  static Runs all;
  return all;
}

// Catch2 has a warning of this kind, too, but that one also finds sections that only prepare what
// the lines behind them assert. A listener would slow down each assertion that holds.
struct Reporter : Catch::ConsoleReporter {
  using ConsoleReporter::ConsoleReporter;

  static std::string getDescription() { return "ConsoleReporter, and runs that assert nothing"; }

  void sectionStarting(const Catch::SectionInfo& info) override {
    if (depth_++ == 0) runs().why_not.reset();
    ConsoleReporter::sectionStarting(info);
  }
  // The outermost section is the whole run.
  void sectionEnded(const Catch::SectionStats& stats) override {
    ConsoleReporter::sectionEnded(stats);
    if (--depth_ > 0) return;
    const std::string& name = stats.sectionInfo.name;
    if (stats.assertions.total() > 0) {
      runs().tried.insert(name);
    } else if (runs().why_not) {
      runs().not_tried.emplace(name, *runs().why_not);
    } else {
      runs().empty.insert(name);
    }
  }

 private:
  int depth_ = 0;
};

CATCH_REGISTER_REPORTER("runs", Reporter)

}  // namespace

void set_not_tried(std::string why) {
  runs().why_not = std::move(why);
}

int run_tests(int argc, char** argv) {
  Catch::Session session;
  session.configData().reporterName = "runs";
  const int result = session.run(argc, argv);
  for (const auto& [name, why] : runs().not_tried)
    if (!runs().tried.contains(name)) std::cout << "not tried: " << name << ": " << why << "\n";
  for (const std::string& name : runs().empty)
    std::cout << name << ": FAILED:\n  it ends without an assertion\n";
  return result == 0 && !runs().empty.empty() ? 1 : result;
}

}  // namespace kube::test
