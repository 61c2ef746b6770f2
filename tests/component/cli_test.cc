// The whole command line, called as main() calls it.
#include "controller/cli/cli.hh"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <streambuf>
#include <vector>

#include "tests/component/captured_errors.hh"
#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"

using namespace trainer;

namespace {

// A device that is full.
struct Full final : std::streambuf {};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// Standard output goes to `sink` while this exists.
class Redirected {
 public:
  explicit Redirected(std::streambuf* sink) : before_(std::cout.rdbuf(sink)) {}
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  ~Redirected() { std::cout.rdbuf(before_); }

 private:
  std::streambuf* before_;
};

int call(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return run_cli(static_cast<int>(words.size()), argv.data());
}

Outcome run(std::vector<std::string> words) {
  std::stringbuf out;
  const Redirected redirected(&out);
  const test::CapturedErrors errors;
  Outcome outcome;
  outcome.code = call(std::move(words));
  outcome.out = out.str();
  outcome.err = errors.text();
  return outcome;
}

}  // namespace

TEST_CASE("an output that cannot be written is an error") {
  for (const char* command :
       {"crds", "blueprints", "version", "--version", "--help", "render --help"}) {
    CAPTURE(command);
    std::vector<std::string> words{"trainer"};
    std::istringstream text(command);
    for (std::string word; text >> word;) words.push_back(word);
    Full full;
    const Redirected redirected(&full);
    const test::CapturedErrors errors;
    CHECK(call(words) == kExitRefused);
    CHECK(errors.text().starts_with("trainer: standard output cannot be written"));
    CHECK(errors.count("\n") == 1);
  }
}

TEST_CASE(
    "a closed output is an error, and a file that is opened later does not get its descriptor") {
  const test::CapturedErrors errors;
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    const int code = call({"trainer", "version"});
    _exit(code == kExitRefused && open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(errors.count("standard output cannot be written") == 1);
}

TEST_CASE("a failure keeps its exit code when its output is lost, too") {
  Full full;
  const Redirected redirected(&full);
  const test::CapturedErrors errors;
  CHECK(call({"trainer", "no-such-command"}) == kExitUsage);
  CHECK(errors.count("standard output") == 0);
}

TEST_CASE("counts of lines and nodes are whole numbers from 0 on") {
  for (const char* option : {"--tail", "--node"}) {
    for (const char* value : {"-1", "1.5", "many", "99999999999999999999"}) {
      CAPTURE(option, value);
      const Outcome outcome = run({"trainer", "logs", "j", option, value});
      CHECK(outcome.code == kExitUsage);
      CHECK(outcome.err == "trainer: " + std::string(option) + ": \"" + value +
                               "\" is too large or no whole number: write 0 or more (see "
                               "--help)\n");
    }
  }
}

TEST_CASE("the command line of upstream's Deployment starts the controller") {
  const std::vector<std::string> upstream = {"trainer", "--config=/no/such/file",
                                             "--zap-log-level=2"};
  const Outcome outcome = run(upstream);
  CHECK(outcome.code == kExitRefused);
  CHECK(outcome.err.find("--config /no/such/file: the file cannot be read") != std::string::npos);

  for (const std::vector<std::string>& more : {std::vector<std::string>{"--zap-devel"},
                                               {"--zap-devel=true", "--zap-time-encoding=epoch"},
                                               {"--zap-stacktrace-level", "error"},
                                               {"--namespace", "logs"},
                                               {"--zap-encoder=console"}}) {
    std::vector<std::string> words = upstream;
    words.insert(words.end(), more.begin(), more.end());
    CAPTURE(more);
    CHECK(run(words).code == kExitRefused);
    std::vector<std::string> named = words;
    named.insert(named.begin() + 1, "controller");
    CHECK(run(named).code == kExitRefused);
  }
}

TEST_CASE("upstream's flags choose the log format, unless this program's own flags do") {
  const std::vector<std::string> words = {"trainer", "--config=/no/such/file",
                                          "--zap-encoder=json"};
  CHECK(run(words).err.starts_with("{"));
  std::vector<std::string> with_own = words;
  with_own.push_back("--log-format=text");
  CHECK_FALSE(run(with_own).err.starts_with("{"));
  CHECK(run({"trainer", "--zap-log-level=loud"}).err ==
        "trainer: --zap-log-level: \"loud\" is no level: write debug, info, error, panic or a "
        "number from 1 on\n");
  CHECK(run({"trainer", "--zap-encoder=xml"}).code == kExitUsage);
  CHECK(run({"trainer", "controller", "--help"}).out.find("zap") == std::string::npos);
}

TEST_CASE("without a subcommand only the controller's own options select it") {
  CHECK(run({"trainer"}).code == kExitUsage);
  const Outcome help = run({"trainer", "--help"});
  CHECK(help.code == kExitDone);
  CHECK(help.out.find("render") != std::string::npos);
  CHECK(run({"trainer", "--version"}).out.starts_with("trainer "));
  CHECK(run({"trainer", "--nonsense"}).code == kExitUsage);
  CHECK(run({"trainer", "--log-level=debug", "version"}).code == kExitUsage);
  CHECK(run({"trainer", "--config", "version", "--no-such-option"}).code == kExitUsage);
  CHECK(run({"/usr/bin/kubectl-trainer", "--help"}).out.find("kubectl trainer") !=
        std::string::npos);
}

TEST_CASE("the port that webhooks listen on is explained") {
  const std::string help = run({"trainer", "controller", "--help"}).out;
  CHECK(help.find("webhook.port") != std::string::npos);
}

TEST_CASE("files are named with or without -f") {
  const std::string first = test::source_root() + "/docs/examples/torch-ddp.yaml";
  const std::string second = test::source_root() + "/docs/examples/failing.yaml";
  const Outcome words = run({"trainer", "render", first, second});
  REQUIRE(words.code == kExitDone);
  CHECK(run({"trainer", "render", "-f", first, "-f", second}).out == words.out);
  CHECK(run({"trainer", "render", "--filename=" + first, second}).out == words.out);
  CHECK(run({"trainer", "render"}).code == kExitUsage);
}

TEST_CASE("an option's ClusterRole is printed, and an unknown option refused") {
  CHECK(run({"trainer", "rbac"}).out.find("  name: kubeflow-trainer-controller-manager\n") !=
        std::string::npos);
  CHECK(run({"trainer", "rbac", "volcano"}).out.find("  name: kubeflow-trainer-volcano\n") !=
        std::string::npos);
  const Outcome refused = run({"trainer", "rbac", "kueue"});
  CHECK(refused.code == kExitRefused);
  CHECK(refused.err ==
        "option kueue: there is none of this name: choose from legacy-finalizers, "
        "finished-marker, coscheduling, volcano, workload, mpi, v1, v1-finished-marker, v1-mpijob, "
        "namespaced\n");
}

TEST_CASE("called as upstream's /manager, the program takes the Training Operator's flags") {
  struct Row {
    std::vector<std::string> words;
    const char* says;
  };
  const Row rows[] = {
      {{"/manager", "--enable-scheme=mxjob"}, "--enable-scheme: unknown kind"},
      {{"/manager", "--enable-scheme", "pytorchjob", "-enable-scheme=mxjob"}, "mxjob"},
      {{"manager", "--enable-scheme", "-leader-elect=true", "--webhook-server-port=0"},
       "--webhook-server-port"},
      {{"/manager", "--pytorch-init-container-template-file=/no/such"}, "/no/such"},
      {{"/manager", "--namespace", "render", "--webhook-secret-name=A_B"}, "--webhook-secret-name"},
      // With a configuration file it is the manager of Trainer v2.
      {{"/manager", "--config=/no/such", "--zap-log-level=2"}, "--config /no/such"},
      {{"trainer", "--enable-scheme", "--gang-scheduler-name=volcano", "--config=/no/such"},
       "--config /no/such"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    const Outcome outcome = run(row.words);
    CHECK(outcome.code == kExitRefused);
    CHECK_THAT(outcome.err, kube::test::contains(row.says));
  }
}
