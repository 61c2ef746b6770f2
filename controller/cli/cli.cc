#include "controller/cli/cli.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "controller/cli/commands.hh"
#include "controller/cli/common_flags.hh"
#include "controller/cli/completion_answer.hh"
#include "controller/cli/controller_flags.hh"
#include "controller/cli/local_flags.hh"
#include "controller/cli/run_flags.hh"
#include "controller/cli/upstream_flags.hh"
#include "controller/cli/verb_flags.hh"
#include "controller/config/configuration.hh"
#include "controller/kinds/registry.hh"
#include "local/node/shim.hh"

namespace trainer {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 refused, not found, the job asked about has failed or waits (plan), or "
    "the output is lost; 2 wrong usage; 3 the cluster cannot be reached; 4 the job never fits "
    "(plan).";

// This outlives the parse and the run: CLI11 writes the options through references.
struct AllOptions {
  ControllerFlags controller;
  std::string manifest_option;
  CrdsOptions crds;
  RuntimesOptions builtin_runtimes;
  CheckOptions check;
  RenderOptions render;
  PlanOptions plan;
  WhyOptions why;
  LogsOptions logs;
  UiOptions ui;
  RunOptions run;
  LocalFlags local;
  VerbFlags verbs;
  OutputFormat version = OutputFormat::kText;
};

CLI::App* add_render(CLI::App& app, AllOptions& all) {
  CLI::App* command = app.add_subcommand(
      "render",
      "Show what would be created for the TrainJobs and JobSets of YAML files, without a cluster");
  add_files(*command, all.render.files);
  command->add_flag("--explain", all.render.is_explained, "Say where each value came from");
  command->add_flag("--jobs", all.render.has_jobs, "Expand JobSets into Jobs and Services");
  command
      ->add_option("--config", all.render.config_file,
                   "The controller's configuration file: gates, devices, cluster domain")
      ->type_name("FILE");
  command->add_option("--feature-gates", all.render.feature_gates, "NAME=true,...");
  add_output(*command, all.render.format, {"yaml", "json"});
  return command;
}

CLI::App* add_plan(CLI::App& app, AllOptions& all) {
  CLI::App* command = app.add_subcommand(
      "plan",
      "Say whether the pods of a job fit into the cluster now, what they wait for, or why "
      "they never fit");
  command
      ->add_option("-f,--filename,FILE", all.plan.files,
                   "YAML or JSON files, with runtimes that the cluster lacks; - is standard input; "
                   "or KIND/NAME of a job that waits")
      ->required();
  add_output(*command, all.plan.format, {"text", "json", "yaml"});
  add_cluster(*command, all.plan.cluster);
  return command;
}

CLI::App* add_logs(CLI::App& app, AllOptions& all) {
  CLI::App* command = app.add_subcommand(
      "logs", "Print the logs of all pods of a TrainJob, each line with its node");
  add_logs_flags(*command, all.logs);
  add_cluster(*command, all.logs.cluster);
  return command;
}

CLI::App* add_run(CLI::App& app, AllOptions& all) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Run `-- COMMAND...` as a TrainJob on the cluster: show it, ask, start it, print the output, "
      "end with its exit status");
  add_job_flags(*command, all.run.job);
  add_run_mode(*command, all.run.mode);
  add_cluster(*command, all.run.cluster);
  return command;
}

CLI::App* add_ui(CLI::App& app, AllOptions& all) {
  CLI::App* command = app.add_subcommand(
      "ui", "Show jobs of all kinds, their progress, logs and causes in a browser, read-only");
  add_ui_flags(*command, all.ui);
  add_cluster(*command, all.ui.cluster);
  command->get_option("--namespace")->excludes("--all-namespaces");
  return command;
}

CLI::App* add_crds(CLI::App& app, AllOptions& all) {
  CLI::App* command =
      app.add_subcommand("crds", "Print or apply the CustomResourceDefinitions to install");
  command->add_option(
      "OPTION", all.crds.installed,
      "Those of v1 (PyTorchJob and the like) or mpi (MPIJob v2beta1) instead, or of "
      "both");
  command->add_option("--except", all.crds.except, "Not those of these names")
      ->allow_extra_args(false);
  command->add_flag("--apply", all.crds.is_applied,
                    "Apply them to the cluster, and wait until their kinds are served");
  command
      ->add_option("--keep", all.crds.keep,
                   "With --apply: annotate this one as well, if the cluster has it, so that "
                   "Helm does not delete it")
      ->allow_extra_args(false);
  add_cluster(*command, all.crds.cluster);
  return command;
}

CLI::App* add_runtimes(CLI::App& app, AllOptions& all) {
  RuntimesOptions& o = all.builtin_runtimes;
  CLI::App* command = app.add_subcommand(
      "blueprints", "Print or apply the ClusterTrainingRuntimes that are built into the program");
  command->alias("runtimes");
  command->add_option("NAME", o.names, "Only these");
  command->add_flag("--list", o.is_list, "Names and frameworks only");
  command
      ->add_option("--image", o.images,
                   "NAME=IMAGE: containers with an image NAME, of any tag, get IMAGE; repeatable")
      ->allow_extra_args(false);
  command->add_option("--label", o.labels, "KEY=VALUE: a label of each; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--apply", o.is_applied, "Apply them to the cluster");
  command->add_flag("--remove-unused", o.removes_unused,
                    "Delete those that were applied so, are not among these, and that no "
                    "unfinished TrainJob uses; without --apply: all such");
  add_cluster(*command, o.cluster);
  return command;
}

void add_commands(CLI::App& app, AllOptions& all, Commands& commands) {
  add_controller(app, all.controller, commands);
  commands[add_render(app, all)] = [&all](Console& console) {
    return run_render(all.render, full_registry(), console);
  };
  commands[add_crds(app, all)] = [&all](Console& console) { return run_crds(all.crds, console); };
  CLI::App* rbac = app.add_subcommand("rbac", "Print the ClusterRole that the controller needs");
  rbac->add_option(
      "OPTION", all.manifest_option,
      "That of coscheduling, volcano, workload, legacy-finalizers, finished-marker, "
      "v1, v1-mpijob, v1-finished-marker or mpi instead; namespaced: a Role, for a controller "
      "with rights in one namespace");
  commands[rbac] = [&all](Console& console) { return run_rbac(all.manifest_option, console); };

  commands[add_runtimes(app, all)] = [&all](Console& console) {
    return run_runtimes(all.builtin_runtimes, console);
  };
  CLI::App* check = app.add_subcommand(
      "check", "Say whether the controller of a cluster works: kinds, leader, admission");
  all.check.lease = Configuration::LeaderElection().resourceName;
  check
      ->add_option("--lease", all.check.lease,
                   "The leader's Lease, in that namespace; empty: no leader is looked for")
      ->capture_default_str();
  check->add_flag(
      "!--no-webhooks", all.check.has_webhooks,
      "The installation has none, as that in one namespace: admission is not looked for");
  add_cluster(*check, all.check.cluster);
  check->get_option("--namespace")->description("The controller's; default: kubeflow-system");
  commands[check] = [&all](Console& console) { return run_check(all.check, console); };

  CLI::App* why = app.add_subcommand(
      "why", "Say what a TrainJob is doing or waiting for, with evidence and the next step");
  add_target(*why, all.why.target);
  add_output(*why, all.why.format, {"text", "json", "yaml"});
  why->add_flag("--stacks", all.why.has_stacks,
                "Print the stacks of all threads and child processes of the last hang instead");
  add_cluster(*why, all.why.cluster);
  commands[why] = [&all](Console& console) { return run_why(all.why, full_registry(), console); };
  commands[add_plan(app, all)] = [&all](Console& console) {
    return run_plan(all.plan, full_registry(), console);
  };
  commands[add_logs(app, all)] = [&all](Console& console) {
    return run_logs(all.logs, full_registry(), console);
  };
  commands[add_run(app, all)] = [&all](Console& console) {
    return run_run(all.run, full_registry(), console);
  };
  commands[add_ui(app, all)] = [&all](Console& console) {
    return run_ui(all.ui, full_registry(), console);
  };
  add_verbs(app, all.verbs, commands);
  add_local(app, all.local, commands);

  CLI::App* version = app.add_subcommand("version", "Print the version");
  add_output(*version, all.version, {"text", "json", "yaml"});
  commands[version] = [&all](Console& console) { return run_version(all.version, console); };
}

// kubectl runs its plugin `kubectl-trainer` for `kubectl trainer`.
std::string shown_name(std::string_view program) {
  const auto slash = program.rfind('/');
  const std::string_view name =
      slash == std::string_view::npos ? program : program.substr(slash + 1);
  return name == "kubectl-trainer" ? "kubectl trainer" : "trainer";
}

// Returns one line, like every other error.
std::string one_line(const CLI::App* app, const CLI::Error& error) {
  return app->get_name() + ": " + error.what() + " (see --help)\n";
}

bool is_subcommand(const CLI::App& app, const std::string& word) {
  const auto all = app.get_subcommands({});
  return std::any_of(all.begin(), all.end(),
                     [&word](const CLI::App* command) { return command->check_name(word); });
}

// CLI11 reports an unknown word as a missing subcommand.
std::string check_subcommand(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return {};
  if (is_subcommand(app, words[0])) {
    const CLI::App* command = app.get_subcommand(words[0]);
    if (command->get_subcommands({}).empty()) return {};
    return check_subcommand(*command, {words.begin() + 1, words.end()});
  }
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  return fmt::format("{}: there is no subcommand \"{}\": choose from {}", app.get_name(), words[0],
                     fmt::join(known, ", "));
}

// Upstream's manager has no subcommands, so its arguments begin with an option. Arguments that
// begin with an option of the controller, and contain no subcommand, are for the controller.
bool is_for_controller(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& controller = *app.get_subcommand("controller");
  const auto option_of = [](const CLI::App& command, const std::string& word) {
    return command.get_option_no_throw(word.substr(0, word.find('=')));
  };
  if (words.empty() || option_of(app, words[0]) != nullptr) return false;  // --help, --version
  if (option_of(controller, words[0]) == nullptr) return false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const CLI::Option* option = option_of(controller, words[i]);
    if (option == nullptr) {
      if (is_subcommand(app, words[i])) return false;
    } else if (option->get_items_expected_min() > 0 && words[i].find('=') == std::string::npos) {
      ++i;  // its value
    }
  }
  return true;
}

// If a standard stream is closed, the next file or connection would get its descriptor, and output
// would go there. So /dev/null is opened in its place, in a mode in which every use fails.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    const int got = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (got != stream && got != -1) close(got);
  }
}

// An output that could not be written completely is an error.
int flushed(int code, Console& console) {
  errno = 0;
  console.out.flush();
  if (console.out) return code;
  const int why = errno;
  console.err << console.program << ": standard output cannot be written";
  if (why != 0) console.err << ": " << std::generic_category().message(why);
  console.err << '\n';
  return code == kExitDone ? static_cast<int>(kExitRefused) : code;
}

int run(std::string_view program, std::vector<std::string> words, Console& console) {
  CLI::App app("Runs training jobs on Kubernetes: TrainJobs, their runtimes and JobSets.",
               console.program);
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("trainer ") + TRAINER_VERSION);
  AllOptions all;
  Commands commands;
  add_commands(app, all, commands);
  app.failure_message(one_line);
  // Only the scripts of `trainer completion` call it, so --help does not list it.
  if (!words.empty() && words[0] == "__complete")
    return answer_completion(app, {words.begin() + 1, words.end()}, full_registry(), console);
  all.controller.options.training_operator.is_manager = use_upstream_words(app, program, words);
  if (const std::string mistake = check_subcommand(app, words); !mistake.empty()) {
    console.err << mistake << '\n';
    return kExitUsage;
  }
  all.run.job.command = take_command(words);
  all.local.run.job.command = all.run.job.command;
  if (is_for_controller(app, words)) words.insert(words.begin(), "controller");
  try {
    std::reverse(words.begin(), words.end());  // CLI11 wants this order
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with code 0. For other errors, only the sentence is printed.
    return app.exit(error, console.out, console.err) == 0 ? kExitDone : kExitUsage;
  }
  const CLI::App* chosen = app.get_subcommands().front();
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return commands.at(chosen)(console);
}

}  // namespace

int run_cli(int argc, char** argv) {
  occupy_standard_streams();
  Console console{std::cin, std::cout, std::cerr, shown_name(argc > 0 ? argv[0] : "trainer"),
                  isatty(STDOUT_FILENO) == 1};
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) words.emplace_back(argv[i]);
  // Only the program itself calls it, so --help does not list it. One shim is started for each pod,
  // so it must start fast, and nothing is parsed.
  if (!words.empty() && words[0] == "shim") return run_shim({words.begin() + 1, words.end()});
  const std::string program = argc > 0 ? argv[0] : "trainer";
  try {
    return flushed(run(program, std::move(words), console), console);
  } catch (const std::filesystem::filesystem_error& error) {
    // The current directory is gone, or is another user's.
    console.err << console.program << ": " << error.what() << '\n';
    return kExitRefused;
  }
}

}  // namespace trainer
