#!/usr/bin/python3
"""That tools/mutate draws the faults that it says, and no text that is none."""
import itertools
import os
import runpy
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutate_draw  # noqa: E402

TOOL = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutate"))

SOURCE = r'''// if (a == b) return;
#include "a.hh"
namespace trainer {
namespace {
constexpr int kMost = 10;
constexpr const char* kWords[] = {"none"};
const std::map<std::string, int> kNames = {{"x", 1}};
struct Row { int first = 1; };
enum class Kind { kNone = 0 };
int declared(int a = 5);
}  // namespace
bool decide(const std::vector<int>& list, std::map<int, int> counts) {
  static_assert(kMost <= 20 || (true && kMost == 5));
  const std::size_t size = list.size();
  if (size > 2 && !counts.empty()) {
    counts[0] = list[1];
    counts.clear();
    return true;
  } else if (const auto at = counts.find(7); at != counts.end())
    std::swap(counts, other);
  for (const auto& [name, count] : counts) {
    if (auto found = find(name)) continue;
    ++total;
  }
  std::string text = R"(if (a == b) { x(); })";
  Row row{3};
  return list.front() == '"';
}
}  // namespace trainer
'''


def edits(kind):
    """'removed -> added' of each mutant of a kind."""
    return [f"{SOURCE[m.begin:m.end]} -> {m.text}" for m in mutate_draw.candidates("a.cc", SOURCE) if m.kind == kind]


class Drawer(unittest.TestCase):
    maxDiff = None

    def test_comparisons_are_turned(self):
        self.assertEqual(edits("comparison"), ["> -> >=", "> -> <=", "&& -> ||", "!= -> ==", "== -> !="])

    def test_conditions_are_negated(self):
        self.assertEqual(edits("condition"), ["size > 2 && !counts.empty() -> !(size > 2 && !counts.empty())", "! -> ",
                                              "at != counts.end() -> !(at != counts.end())"])

    def test_branches_are_dropped(self):
        self.assertEqual(edits("branch"), ["size > 2 && !counts.empty() -> false && (size > 2 && !counts.empty())",
                                           "size > 2 && !counts.empty() -> true || (size > 2 && !counts.empty())",
                                           "at != counts.end() -> false && (at != counts.end())",
                                           "at != counts.end() -> true || (at != counts.end())"])

    def test_constants_are_changed(self):
        self.assertEqual(sorted(edits("constant")), sorted([
            "10 -> 9", "10 -> 11", " -> ?", "2 -> 1", "2 -> 3", "true -> false", "7 -> 6", "7 -> 8", "3 -> 2", "3 -> 4"]))

    def test_statements_are_left_out(self):
        self.assertEqual(edits("statement"), ["counts[0] = list[1] -> ", "counts.clear() -> ", "std::swap(counts, other) -> ", "continue -> ", "++total -> "])

    def test_a_seed_decides(self):
        sources = {"a.cc": SOURCE, "b.cc": SOURCE}
        first, again, other = (list(itertools.islice(mutate_draw.draw(sources, seed), 20)) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_each_mutant_is_drawn_once(self):
        drawn = list(mutate_draw.draw({"a.cc": SOURCE}, 3))
        self.assertEqual(len(drawn), len(set(drawn)))
        self.assertEqual(sorted(drawn), sorted(mutate_draw.candidates("a.cc", SOURCE)))
        self.assertTrue(all(mutate_draw.apply(SOURCE, mutant) != SOURCE for mutant in drawn))

    def test_each_kind_is_as_likely(self):
        source = "void f() {\n" + "  g();\n" * 1000 + "  if (a) h = 1;\n}\n"
        kinds = {mutant.kind for mutant in itertools.islice(mutate_draw.draw({"a.cc": source}, 1), 20)}
        self.assertEqual(kinds, {"condition", "branch", "constant", "statement"})


class Tool(unittest.TestCase):
    def test_an_accepted_survivor_names_the_lines(self):
        mutant = next(m for m in mutate_draw.candidates("a.cc", SOURCE) if m.text == "==")
        lines = TOOL["lines_of"](SOURCE, mutant)
        text = f"# about\n\na.cc\n- {lines[0]}\n+ {lines[1]}\nnone is ever\n  there\n\nb.cc\n- x\n+ y\nno"
        self.assertEqual(TOOL["accepted_survivors"](text)["a.cc", *lines], "none is ever there")

    def test_the_case_that_kills(self):
        output = "Filters: x\n" + "-" * 79 + "\na case\n  a section\n" + "-" * 79 + "\n../a.cc:1\n" + "." * 79 + "\n\n../a.cc:5: FAILED:\n"
        self.assertEqual(TOOL["cause"](output), "a case")
        self.assertEqual(TOOL["cause"](""), "it crashed")

    def test_a_mutant_is_compiled_without_optimization(self):
        programs = object.__new__(TOOL["Programs"])
        programs.compiles = {"u.cc": "ccache clang++-16 -I. -Werror -O2 -fprofile-use=p -g1 -MD -MQ u.o -MF u.d -o u.o -c u.cc".split()}
        self.assertEqual(programs.compile_command("u.cc"), ["clang++-16", "-I.", *TOOL["COMPILED"], "-c", "u.cc"])

    def test_quick_tests_and_those_of_the_folder_come_first(self):
        programs = object.__new__(TOOL["Programs"])
        programs.unit_of = {"runtimes/v1/a.cc": "runtimes/u.cc"}
        programs.loaded = {name: "lib.a(u.cc.o)" for name in ("trainjob", "v1", "fate")} | {"batch": "lib.a(other.cc.o)"}
        programs.suites = [suite for suite in TOOL["SUITES"] + TOOL["SLOW"] if suite[0] in programs.loaded]
        self.assertEqual([name for name, _ in programs.suites_for("runtimes/v1/a.cc")], ["v1", "trainjob", "v1", "trainjob", "fate"])

    def test_mutants_that_do_not_compile_are_replaced(self):
        class Programs:
            @staticmethod
            def verdict(mutant, source):
                return None if mutant.begin % 2 else source
        mutants = (mutate_draw.Mutant("a.cc", "constant", begin, begin, "") for begin in range(9))
        found = [(mutant.begin, result) for mutant, result in TOOL["results"](Programs, {"a.cc": "x"}, mutants, 3)]
        self.assertEqual(found, [(0, "x"), (1, None), (2, "x"), (3, None), (4, "x")])

    def test_each_source_has_mutants(self):
        sources = TOOL["sources_in"](TOOL["ROOT"], TOOL["FOLDERS"])
        self.assertGreater(len(sources), 80)
        self.assertGreater(sum(len(mutate_draw.candidates(path, source)) for path, source in sources.items()), 5000)


if __name__ == "__main__":
    unittest.main()
