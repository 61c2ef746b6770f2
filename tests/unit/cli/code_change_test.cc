#include "controller/cli/code_change.hh"

#include "controller/cli/code_push.hh"
#include "controller/cli/run_flags.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using Kind = CodeEntry::Kind;
using Entries = std::vector<CodeEntry>;
using Paths = std::vector<std::string>;

namespace {

CodeEntry file(std::string path, std::string text = "", bool is_executable = false) {
  return {Kind::kFile, std::move(path), is_executable, std::move(text)};
}
CodeEntry folder(std::string path) {
  return {Kind::kDirectory, std::move(path), false, ""};
}
CodeEntry link_to(std::string path, std::string target) {
  return {Kind::kLink, std::move(path), false, std::move(target)};
}

}  // namespace

TEST_CASE("the change of a folder has the files that were added, edited and removed", "[watch]") {
  struct Row {
    const char* what;
    Entries before, after;
    Paths changed;
  };
  const Row rows[] = {
      {"nothing", {file("a", "1")}, {file("a", "1")}, {}},
      {"edited", {file("a", "1"), file("b")}, {file("b"), file("a", "2")}, {"a"}},
      {"may be executed", {file("a")}, {file("a", "", true)}, {"a"}},
      {"added and removed", {file("b")}, {file("a")}, {"a", "b"}},
      {"in another folder", {}, {folder("src"), file("src/a")}, {"src/a"}},
      {"an empty folder", {}, {folder("src")}, {}},
      {"another link", {link_to("l", "a")}, {link_to("l", "b")}, {"l"}},
      {"a file becomes a link", {file("l", "a")}, {link_to("l", "a")}, {"l"}},
      {"a file becomes a folder", {file("a")}, {folder("a"), file("a/b")}, {"a", "a/b"}},
      {"a folder becomes a file", {folder("a"), file("a/b")}, {file("a")}, {"a", "a/b"}},
      {"what Python writes",
       {},
       {folder("__pycache__"), file("__pycache__/a.pyc"), file("a/__pycache__/x"), file("a.pyc")},
       {}},
      {"what editors write",
       {file(".a.py.swp", "1")},
       {file(".a.py.swp", "2"), file("a.py~"), file("#a.py#"), file(".#a.py"), file("s/.b.swx")},
       {}},
      {"names like those", {}, {file("a.swp"), file("#a"), file(".sw")}, {"#a", ".sw", "a.swp"}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(changed_paths(row.before, row.after) == row.changed);
  }
}

TEST_CASE("a change is said in a few words", "[watch]") {
  CHECK(change_text({"train.py"}) == "1 file changed (train.py)");
  CHECK(change_text({"a", "b", "c"}) == "3 files changed (a, b, c)");
  CHECK(change_text({"a", "b", "c", "d", "e"}) == "5 files changed (a, b, c, and 2 more)");
}

TEST_CASE("files that the new code has no more are removed, and nothing else", "[watch]") {
  const Entries before = {folder("src"), file("src/old.py"), file("keep"), file("it's"),
                          folder("x"),   file("x/y"),        file("z")};
  const Entries after = {file("keep", "2"), file("x"), folder("z"), file("z/a")};
  const std::string script = apply_script(before, after, 7);
  CHECK(script.find("keep") == script.npos);
  CHECK_THAT(script, kube::test::starts_with("set -e\n"
                                             "rm -f './z'\n"
                                             "rm -f './x/y'\n"
                                             "rm -rf './x'\n"
                                             "rm -f './src/old.py'\n"
                                             "rm -f './it'\\''s'\n"
                                             "rmdir './src' 2>/dev/null || :\n"
                                             "if "));
  CHECK_THAT(script,
             kube::test::ends_with("echo 7 >.trainer-watch/round\nrm -f .trainer-watch/hold\n"));
}

TEST_CASE("edits go into the pods that run", "[watch]") {
  const auto pod = [](const std::string& more) {
    const auto parsed = kube::parse_yaml(
        "{metadata: {name: p, namespace: team}, spec: {nodeName: a, containers: [{name: sidecar}, "
        "{name: node, workingDir: /code, command: [sh, -c, TRAINER_CODE_ROUND]}]}, status: {phase: "
        "Running, containerStatuses: [{name: node, state: {running: {}}}]}}");
    const auto patch = kube::parse_yaml(more);
    kube::Json object = *parsed;
    for (const auto& [name, value] : patch->as_object())
      for (const auto& [inner, set] : value.as_object()) object[name].set(inner, set);
    return object;
  };
  const auto targets = push_targets({pod("{status: {phase: Running}}")});
  REQUIRE(targets.running.size() == 1);
  CHECK(targets.running[0].pod == kube::ObjectKey("team", "p"));
  CHECK(targets.running[0].container == "node");
  CHECK(targets.running[0].directory == "/code");
  struct Row {
    const char* more;
    bool is_starting;
    const char* obstacle;
  };
  const Row rows[] = {
      {"{status: {phase: Pending, containerStatuses: []}}", true, ""},
      {"{status: {phase: Pending, containerStatuses: []}, spec: {nodeName: ''}}", false, ""},
      {"{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}", false, ""},
      {"{status: {phase: Failed}}", false, "pod p has ended"},
      {"{spec: {containers: [{name: node, command: [python]}]}}", false, "cannot begin again"},
      {"{spec: {containers: [{name: other}]}}", false, ""},
  };
  for (const Row& row : rows) {
    INFO(row.more);
    const auto found = push_targets({pod(row.more)});
    CHECK(found.running.empty());
    CHECK(found.is_starting == row.is_starting);
    if (*row.obstacle == '\0')
      CHECK(found.obstacle.empty());
    else
      CHECK_THAT(found.obstacle, kube::test::contains(row.obstacle));
  }
}

TEST_CASE("--watch needs a folder and a command that is followed", "[watch]") {
  JobFlags job;
  RunMode mode;
  CHECK(check_watch(job, mode));
  mode.is_watched = true;
  REQUIRE_FALSE(check_watch(job, mode));
  CHECK_THAT(check_watch(job, mode).error().message, kube::test::contains("needs --code"));
  job.code = ".";
  CHECK(check_watch(job, mode));
  mode.is_detached = true;
  CHECK_THAT(check_watch(job, mode).error().message, kube::test::contains("--detach"));
  mode.is_detached = false;
  mode.is_dry_run = true;
  CHECK_THAT(check_watch(job, mode).error().message, kube::test::contains("--dry-run"));
}
