#!/usr/bin/python3
"""That tools/lint finds what it is there to find: mistakes are planted in a small tree."""
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lint_asserts  # noqa: E402
import lint_callers  # noqa: E402
import lint_comments  # noqa: E402
import lint_docs  # noqa: E402
import lint_files  # noqa: E402
import lint_includes  # noqa: E402
import lint_words  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def includes(self, path, *targets):
        """A file that includes others, which exist."""
        self.write(path, "#pragma once\n" + "".join(f'#include "{target}"\n' for target in targets))
        for target in targets:
            full = target if not target.startswith(("kube/", "local/")) else "subprojects/" + target
            if not os.path.exists(os.path.join(self.root, full)):
                self.write(full, "#pragma once\n")


class Circles(Tree):
    def found(self):
        return lint_includes.circle_complaints(self.root)

    def test_a_tree_has_none(self):
        self.includes("runtimes/plugins/mpi/mpi.cc", "runtimes/pipeline/plugin.hh", "kube/model/json.hh")
        self.includes("runtimes/plugins/registry.cc", "runtimes/plugins/mpi/mpi.hh", "runtimes/pipeline/plugin.hh")
        self.includes("controller/kinds/registry.cc", "runtimes/plugins/registry.hh")
        self.assertEqual(self.found(), [])

    def test_of_two_folders(self):
        self.includes("runtimes/jobset/plan.cc", "runtimes/pipeline/pipeline.hh")
        self.includes("runtimes/pipeline/pipeline.cc", "runtimes/jobset/plan.hh")
        self.assertEqual(len(self.found()), 1)
        self.assertIn("runtimes/jobset -> runtimes/pipeline -> runtimes/jobset", self.found()[0])
        self.assertIn('runtimes/jobset/plan.cc:2: #include "runtimes/pipeline/pipeline.hh"', self.found()[0])

    def test_of_three_folders(self):
        self.includes("controller/a/a.hh", "controller/b/b.hh")
        self.includes("controller/b/b.hh", "controller/c/c.hh")
        self.includes("controller/c/c.cc", "controller/a/a.hh")
        self.assertEqual(len(self.found()), 1)
        self.assertIn("controller/a -> controller/b -> controller/c -> controller/a", self.found()[0])

    def test_of_a_folder_and_the_one_above_it(self):
        self.includes("api/schema/check.cc", "api/kinds.hh")
        self.includes("api/read.cc", "api/schema/check.hh")
        self.assertEqual(len(self.found()), 1)

    def test_that_only_the_folders_above_close(self):
        self.includes("runtimes/plugins/mpi/mpi.cc", "runtimes/jobset/views.hh")
        self.includes("runtimes/jobset/plan.cc", "runtimes/plugins/torch/torch.hh")
        self.assertEqual(len(self.found()), 1)
        self.assertIn("runtimes/jobset -> runtimes/plugins -> runtimes/jobset", self.found()[0])

    def test_within_a_subproject(self):
        self.includes("subprojects/kube/client/watcher.cc", "kube/manager/cache.hh")
        self.includes("subprojects/kube/manager/cache.cc", "kube/client/watcher.hh")
        self.includes("subprojects/local/node/agent.cc", "local/server/serve.hh")
        self.includes("subprojects/local/server/serve.cc", "local/node/agent.hh")
        self.assertEqual(len(self.found()), 2)

    def test_of_two_subprojects(self):
        self.includes("subprojects/local/node/agent.cc", "kube/client/watcher.hh")
        self.includes("subprojects/kube/client/watcher.cc", "local/node/agent.hh")
        self.assertEqual(len(self.found()), 1)
        self.assertIn("subprojects/kube/client -> subprojects/local/node -> subprojects/kube/client", self.found()[0])


class Order(Tree):
    def found(self):
        return lint_includes.order_complaints(self.root)

    def test_what_is_allowed(self):
        self.includes("runtimes/trainjob/plan.cc", "runtimes/jobset/plan.hh", "runtimes/views/pod.hh", "api/job.hh", "kube/model/json.hh")
        self.includes("subprojects/kube/manager/worker.cc", "kube/client/watcher.hh", "kube/model/plan.hh")
        self.includes("controller/process/run.cc", "controller/kinds/registry.hh", "kube/manager/worker.hh")
        self.includes("controller/local/daemon.cc", "local/server/serve.hh", "local/kinds/kinds.hh", "controller/process/run.hh")
        self.includes("subprojects/local/server/serve.cc", "local/node/agent.hh", "kube/server/api.hh", "kube/manager/log.hh", "api/job.hh")
        self.assertEqual(self.found(), [])

    def test_reconcilers_know_nothing_of_local_mode(self):
        for folder in ("runtimes/trainjob", "runtimes/jobset", "runtimes/plugins/mpi", "runtimes/pipeline", "controller/kinds/trainjob",
                       "controller/kinds/jobset", "controller/process"):
            for target in ("kube/server/api.hh", "controller/local/daemon.hh", "local/node/agent.hh"):
                self.check_refused(f"{folder}/file.cc", target)

    def check_refused(self, path, target):
        with self.subTest(path=path, target=target):
            self.includes(path, target)
            self.assertTrue(any(c.startswith(path) for c in self.found()), self.found())
            os.remove(os.path.join(self.root, path))

    def test_what_is_not(self):
        for path, target in [("runtimes/views/pod.cc", "runtimes/jobset/plan.hh"),
                             ("runtimes/jobset/plan.cc", "runtimes/plugins/mpi/mpi.hh"),
                             ("runtimes/trainjob/plan.cc", "runtimes/admission/needs.hh"),
                             ("runtimes/trainjob/children.cc", "controller/config/config.hh"),
                             ("api/read.cc", "runtimes/jobset/plan.hh"),
                             ("api/read.cc", "kube/client/watcher.hh"),
                             ("subprojects/kube/manager/worker.cc", "runtimes/jobset/plan.hh"),
                             ("subprojects/kube/client/watcher.cc", "kube/manager/worker.hh"),
                             ("subprojects/local/node/agent.cc", "local/server/serve.hh"),
                             ("subprojects/local/server/serve.cc", "controller/local/admit.hh"),
                             ("subprojects/local/kinds/job.cc", "runtimes/batch/job.hh"),
                             ("subprojects/kube/client/watcher.cc", "local/node/agent.hh"),
                             ("controller/config/load.cc", "controller/ssh/key.hh"),
                             ("controller/status/report.cc", "controller/kinds/registry.hh"),
                             ("controller/kinds/trainjob/kind.cc", "controller/process/run.hh")]:
            self.check_refused(path, target)


class Files(Tree):
    def test_length(self):
        self.write("controller/a/long.cc", "\n" * 401)
        self.write("controller/a/fits.cc", "\n" * 400)
        self.write("subprojects/kube/tests/long.cc", "\n" * 401)
        self.assertEqual([c.split(":")[0] for c in lint_files.too_long(self.root)], ["controller/a/long.cc"])

    def test_tests_that_no_stage_runs(self):
        self.write("check", "# lost_test.py\nstage_a() { run a_test.py; }\n\nstage_b() {\n  need a || return\n  run one_b_test.py \\\n    b_test.py\n}\n")
        for name in ("a_test.py", "b_test.py", "lost_test.py", "harness.py"):
            self.write(f"tests/cluster/{name}", "")
        self.write("tests/local/one_b_test.py", "")
        self.assertEqual([c.split(":")[0] for c in lint_files.without_stage(self.root)], ["tests/cluster/lost_test.py"])


class Words(Tree):
    def found(self, path, text):
        self.write(path, text)
        found = [(line, words) for _, line, words, _ in lint_words.complaints(self.root)]
        os.remove(os.path.join(self.root, path))
        return found

    def test_in_comments_and_identifiers(self):
        self.assertEqual(self.found("api/a.cc", "// Nobody reads it.\nbool is_ours();\nclass FirstWave {};\n"),
                         [(1, "nobody"), (2, "ours"), (3, "wave")])

    def test_over_the_end_of_a_line(self):
        self.assertEqual(self.found("api/a.cc", "// The key is due: look\n// again.\n"), [(1, "look again")])

    def test_a_sign_parts_words(self):
        self.assertEqual(self.found("api/a.cc", "// Where to look. Again, no one knows.\n"), [])

    def test_parts_of_words(self):
        self.assertEqual(self.found("api/a.cc", "// Hours and colours understand waveforms; /bin/sh, shellcheck.\n"), [])

    def test_literals_of_code(self):
        self.assertEqual(self.found("api/a.cc", 'auto a = "nobody"; // nobody\nauto b = R"(told\n)"; auto told = 1;\n'),
                         [(1, "nobody"), (3, "told")])
        self.assertEqual(self.found("tests/a.cc", 'TEST_CASE("a b") {\n  auto a = "told";\n}\n'
                                                  'TEST_CASE_METHOD(Fixture,\n                 "an end is told") {}\n  SECTION("no bell") {}\n'),
                         [(5, "told"), (6, "bell")])

    def test_names_of_other_projects(self):
        self.assertEqual(self.found("tests/faults/a.py", "etcd_alarm('ACTIVATE')\n"), [])
        self.assertEqual(self.found("tests/other/a.py", "etcd_alarm('ACTIVATE')\n"), [(1, "alarm")])

    def test_names_that_users_hold(self):
        self.assertEqual(self.found("docs/a.md", "The expander: run `trainer blueprints`.\n"), [])
        self.assertEqual(self.found("runtimes/a.hh", "struct Expander;\n"), [(1, "expander")])
        self.assertEqual(self.found("controller/config/a.hh", "struct Expander;\n"), [])

    def test_documents_and_scripts(self):
        self.assertEqual(self.found("docs/a.md", "It stands here, `told`.\n"), [(1, "stands")])
        self.assertEqual(self.found("tools/a", "#!/bin/sh\n# Somebody waits.\n"), [(2, "somebody")])
        self.assertEqual(self.found("tools/a.bin", "somebody\n"), [])

    def test_citations(self):
        self.assertEqual(self.found("api/a.cc", "// jobset-contract 3.4\n// contract 2, design.md\n"),
                         [(1, "jobset-contract"), (2, "contract 2"), (2, "design.md")])


class Docs(Tree):
    def found(self, path, text):
        self.write(path, text)
        found = [(int(c.split(":")[1]), c.split(": ", 1)[1]) for c in lint_docs.complaints(self.root)]
        os.remove(os.path.join(self.root, path))
        return found

    def lines(self, path, text):
        return [line for line, _ in self.found(path, text)]

    def test_lines(self):
        fits, long = "x" * 200, "x" * 201
        self.assertEqual(self.lines("docs/a.md", f"{fits}\n{long}\n```\n{long}\n```\n| a | {long} |\n"), [2, 6])

    def test_sentences(self):
        short, long = "A" + " b" * 38 + " end.", "A" + " b" * 39 + " end."
        self.assertEqual(self.lines("docs/a.md", f"# T\n\n{short} {short}\n\n- a `{long}`\n- {long[:60]}\n  {long[60:]}\n"), [6])

    def test_beginnings_in_documents(self):
        self.assertEqual(self.found("docs/a.md", "# What it is\n\nIt runs. What runs\nends. What is it?\n\n- *As here*, it is.\n\n| What it is | why |\n"),
                         [(3, "'What runs ends': write a whole sentence"), (6, "'As here*, it is': write a whole sentence"), (8, "'What it is': write a whole sentence")])
        self.assertEqual(self.found("docs/a.md", "It says `no. Of x`, what it is, and as Of is.\n"), [])

    def test_beginnings_in_comments(self):
        self.assertEqual(self.lines("tools/a", "#!/bin/bash\n# It is. What is\n# left.\nrun '# What it is'  # Of a.\necho\n\n# As b.\n"), [2, 4, 7])
        self.assertEqual(self.lines("tests/a.py", '"""A module.\n\nAs b.\n"""\n\n\ndef f():\n    """What it does."""\n    return "# Of a"  # Of a.\n'), [3, 8, 9])
        self.assertEqual(self.lines("manifests/a.yaml", "# As b.\na: b\n"), [1])
        self.assertEqual(self.lines("manifests/a.yaml", "# Printed by `trainer`.\n# As b.\na: b\n"), [])

    def test_paths(self):
        self.write("tools/there", "")
        self.assertEqual(self.found("docs/a.md", "Read `tools/there`, `tools/lost.py`, `kube/lost/` and `tests/run all`.\n"),
                         [(1, "there is no tools/lost.py"), (1, "there is no kube/lost/")])
        self.assertEqual(self.found("CHANGELOG.md", "Until `tools/lost.py`.\n"), [])


class Comments(Tree):
    def found(self, *lines):
        self.write("api/a.cc", "\n".join(lines) + "\n")
        return [(line, words) for _, line, words in lint_comments.complaints(self.root)]

    def test_sentences(self):
        self.assertEqual(self.found("// The jobs of a set are kept. It ends when all do, and what is", "// left goes. Which is so.", "int a;"), [(2, "Which is so.")])
        self.assertEqual(self.found("// See x. it goes on.", "#define A 1'000 // of a", "char q = '\"'; // What it is."), [(2, "of a"), (3, "What it is.")])

    def test_first_words(self):
        for words in ("Of two jobs the first.", "As upstream does.", "What is kept.", "Whether it ends.", "How it ends.", "Likewise.", "of a pod", "so that it ends"):
            self.assertEqual(self.found("int a;", f"// {words}"), [(2, words)])
        self.assertEqual(self.found("// The job ends. So does the pod. That is all."), [])

    def test_main_clauses(self):
        self.assertEqual(self.found("// Where it is kept.", "int a;", "// When: at 1, and later.", "int b;", "// for tests", "int c;"),
                         [(1, "Where it is kept."), (3, "When: at 1, and later."), (5, "for tests")])
        self.assertEqual(self.found("// If it ends, it is kept. When it is gone,", "// nothing is: none, or one."), [])

    def test_paragraphs_and_columns(self):
        self.assertEqual(self.found("// The first. `what` is a name.", "//", "// What is second.", "int a;  // bytes", "        // and more", "  // of another column"),
                         [(3, "What is second."), (6, "of another column")])

    def test_literals(self):
        self.assertEqual(self.found('auto a = "// What it is.";', 'auto b = R"(', "// Of it", ')"; // by name'), [])


class Callers(Tree):
    BUILD = """
rule cc
  command = clang++-16 -O1 -fno-inline-functions -ffunction-sections -c $in -o $out
rule ar
  command = ar rcs $out $in
rule link
  command = clang++-16 -fuse-ld=lld -o $out $in
build main.o: cc main.cc
build used.o: cc used.cc
build alone.o: cc alone.cc
build lib.a: ar used.o alone.o
build trainer: link main.o lib.a
"""

    def test_a_function_and_a_file_that_nothing_calls(self):
        self.write("build.ninja", self.BUILD)
        self.write("main.cc", "int used(int);\nint main(int n, char**) { return used(n); }\n")
        self.write("used.cc", "int inner(int n) { return n + 1; }\nint used(int n) { return inner(n); }\nint idle(int n) { return inner(n); }\n")
        self.write("alone.cc", "int far(int n) { return n; }\nint alone(int n) { return far(n); }\n")
        subprocess.run(["ninja", "-C", self.root], check=True, stdout=subprocess.DEVNULL)
        self.enterContext(unittest.mock.patch.object(lint_callers, "TESTS_ONLY", {}))
        self.assertEqual([complaint.split(":")[0] for complaint in lint_callers.complaints(self.root)], ["alone(int)", "far(int)", "idle(int)"])


class Asserts(unittest.TestCase):
    def complaints(self, line):
        return lint_asserts.complaints_of("a.cc", "\n" + line + "\n")

    def test_a_text_that_may_be_empty(self):
        for line in ("CHECK(text.find(row.part) != std::string::npos);", "REQUIRE(text.starts_with(part));", "CHECK(text.find(\"\") != text.npos);",
                     "CHECK((a || text.find(part) == 0));", "CHECK_THAT(text, Catch::EndsWith(part));", "CHECK(message(\"(\").find(\n    part) != text.npos);"):
            self.assertEqual(len(self.complaints(line)), 1, line)
        for line in ('CHECK(text.find("a") != text.npos);', "CHECK(map.find(key) != map.end());", 'CHECK(text.starts_with(folder + "/"));',
                     "CHECK(text.find('a') == 0);", "CHECK_THAT(text, kube::test::contains(part));", 'CHECK_THAT(text, Catch::Contains("a" + b));', 'CHECK(fmt::format("{}", a).find(\'x\') != text.npos);'):
            self.assertEqual(self.complaints(line), [], line)

    def test_an_assertion_that_is_implied(self):
        for line in ("if (found) CHECK(found);", "if (a && b) {\n  REQUIRE(a && b);"):
            self.assertEqual(len(self.complaints(line)), 1, line)
        for line in ("if (found) CHECK(*found == 1);", "CHECK(a == b);"):
            self.assertEqual(self.complaints(line), [], line)


if __name__ == "__main__":
    unittest.main()
