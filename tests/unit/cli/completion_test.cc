#include "controller/cli/completion.hh"

#include <CLI/CLI.hpp>

#include "controller/cli/common_flags.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using Source = Completion::Source;

namespace {

// A parser like that of the program, of which nothing else is known to the completion.
struct Parser {
  CLI::App app{"", "trainer"};
  std::vector<std::string> files;
  std::vector<std::string> target;
  std::vector<std::string> many;
  ClusterOptions cluster;
  OutputFormat format = OutputFormat::kText;
  std::string word;
  bool is_set = false;

  Parser() {
    CLI::App* why = app.add_subcommand("why", "Say why");
    add_target(*why, target);
    add_output(*why, format, {"text", "json", "yaml"});
    why->add_flag("-s,--stacks", is_set, "Stacks");
    why->add_option("--secret", word, "Not listed")->group("");
    why->add_flag("-q", is_set, "Quiet");
    add_cluster(*why, cluster);
    CLI::App* render = app.add_subcommand("render", "Render");
    add_files(*render, files);
    render->add_option("--dir", word, "A directory")->type_name("DIR");
    CLI::App* script = app.add_subcommand("completion", "Print a script");
    script->add_option("INTERPRETER", word, "")->check(CLI::IsMember({"bash", "zsh"}));
    app.add_subcommand("hidden", "Not listed")->group("");
    CLI::App* local = app.add_subcommand("local", "Here");
    CLI::App* stop = local->add_subcommand("stop", "Stop");
    stop->add_option("JOB", many, "Names");
    stop->add_option("--state", word, "A directory")->type_name("DIR");
  }

  Completion complete(const std::vector<std::string>& words) const {
    return complete_words(app, words);
  }
  std::vector<std::string> candidates(const std::vector<std::string>& words) const {
    std::vector<std::string> found;
    for (const Candidate& each : complete(words).candidates) found.push_back(each.word);
    return found;
  }
};

}  // namespace

TEST_CASE("words of the program are completed by its own description") {
  using Words = std::vector<std::string>;
  const Parser parser;
  struct Row {
    Words words;
    Words candidates;
  };
  const std::vector<Row> rows{
      {{}, {"why", "render", "completion", "local"}},
      {{""}, {"why", "render", "completion", "local"}},
      {{"w"}, {"why"}},
      {{"local", ""}, {"stop"}},
      {{"why", "--st"}, {"--stacks"}},
      {{"why", "--k"}, {"--kubeconfig"}},
      {{"why", "-q"}, {"-q"}},
      {{"why", "--sec"}, {}},
      {{"why", "-o", ""}, {"text", "json", "yaml"}},
      {{"why", "-o", "j"}, {"json"}},
      {{"why", "--output=y"}, {"yaml"}},
      {{"why", "--output", "=", "y"}, {"yaml"}},
      {{"why", "--output", "="}, {"text", "json", "yaml"}},
      {{"why", "--context", ""}, {}},
      {{"completion", ""}, {"bash", "zsh"}},
      {{"completion", "bash", ""}, {}},
      {{"nothing", ""}, {"why", "render", "completion", "local"}},
      {{"why", "--stacks="}, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    CHECK(parser.candidates(row.words) == row.candidates);
  }
  const Completion completion = parser.complete({"why", "--output=y"});
  CHECK(completion.before == "--output=");
  CHECK(completion.begun == "y");
  CHECK(parser.complete({"w"}).candidates == std::vector<Candidate>{{"why", "Say why"}});
}

TEST_CASE("files, jobs and namespaces are looked up elsewhere") {
  const Parser parser;
  struct Row {
    std::vector<std::string> words;
    Source source;
    std::string kind;
  };
  const std::vector<Row> rows{
      {{"render", ""}, Source::kFiles, ""},
      {{"render", "a.yaml", "b"}, Source::kFiles, ""},
      {{"render", "-f", ""}, Source::kFiles, ""},
      {{"render", "--dir", ""}, Source::kDirectories, ""},
      {{"render", "--dir=/tm"}, Source::kDirectories, ""},
      {{"why", "--kubeconfig", ""}, Source::kFiles, ""},
      {{"why", "-n", ""}, Source::kNamespaces, ""},
      {{"why", "--namespace=te"}, Source::kNamespaces, ""},
      {{"why", ""}, Source::kJobs, ""},
      {{"why", "--stacks", "ll"}, Source::kJobs, ""},
      {{"why", "-o", "json", "ll"}, Source::kJobs, ""},
      {{"why", "pytorchjob", "ll"}, Source::kJobs, "pytorchjob"},
      {{"why", "pytorchjob", "ll", ""}, Source::kKnown, ""},
      {{"why", "--", "ll"}, Source::kFiles, ""},
      {{"local", "stop", ""}, Source::kJobs, ""},
      {{"local", "stop", "a", "b"}, Source::kJobs, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const Completion found = parser.complete(row.words);
    CHECK(found.source == row.source);
    CHECK(found.kind == row.kind);
    CHECK(found.candidates.empty());
  }
}

TEST_CASE("the cluster that is asked is that of the command line") {
  const Parser parser;
  const Completion found =
      parser.complete({"why", "--kubeconfig=/k", "--context", "c", "-nteam", ""});
  CHECK(found.cluster.kubeconfig == "/k");
  CHECK(found.cluster.context == "c");
  CHECK(found.cluster.ns == "team");
  CHECK_FALSE(found.is_local);
  const Completion local = parser.complete({"local", "stop", "--state", "/s", ""});
  CHECK(local.is_local);
  CHECK(local.state == "/s");
}
