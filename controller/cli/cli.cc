#include "controller/cli/cli.hh"

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "controller/cli/commands.hh"
#include "controller/config/configuration.hh"
#include "controller/config/options.hh"
#include "controller/config/values.hh"
#include "controller/core/run.hh"

namespace trainer {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 refused, not found, or the job asked about has failed; 2 wrong usage; 3 "
    "the cluster "
    "cannot be reached.";

// Options live as long as the parse and the run: CLI11 writes through the references it was given.
struct Everything {
  ControllerOptions controller;
  std::string expander;
  std::string log_format = "text";
  BlueprintOptions blueprints;
  RenderOptions render;
  WhyOptions why;
  LogsOptions logs;
  std::string output;
};

using Command = std::function<int(Console&)>;

OutputFormat parse_format(const std::string& text, OutputFormat otherwise) {
  if (text == "json") return OutputFormat::kJson;
  if (text == "yaml") return OutputFormat::kYaml;
  return otherwise;
}

void add_output(CLI::App& app, std::string& output, const std::vector<std::string>& formats) {
  app.add_option("-o,--output", output, "Output format")->check(CLI::IsMember(formats));
}

void add_cluster(CLI::App& app, ClusterOptions& cluster) {
  app.add_option("--kubeconfig", cluster.kubeconfig,
                 "Path of a kubeconfig; default: $KUBECONFIG, ~/.kube/config");
  app.add_option("--context", cluster.context,
                 "Context of the kubeconfig; default: the current one");
  app.add_option("-n,--namespace", cluster.ns, "Namespace; default: the context's");
}

std::string check_bind_address(const std::string& text) {
  if (text == "0" || parse_endpoint(text)) return {};
  return "\"" + text + "\" is no address: write HOST:PORT, :PORT, or 0 for none";
}

std::string check_webhook_url(const std::string& text) {
  if (parse_https_url(text)) return {};
  return "\"" + text +
         "\" cannot be reached by the API server: write https://HOST:PORT, without a path";
}

std::string check_duration(const std::string& text) {
  if (parse_duration(text)) return {};
  return "\"" + text + "\" is no duration: write 30s, 15m or 2h";
}

CLI::App* add_controller(CLI::App& app, Everything& all) {
  CLI::App* command =
      app.add_subcommand("controller", "Run the controller, in the cluster or beside it");
  ControllerOptions& o = all.controller;
  command->add_option(
      "--kubeconfig", o.kubeconfig,
      "Path of a kubeconfig; default: $KUBECONFIG, the pod's service account, ~/.kube/config");
  command->add_option("--context", o.context,
                      "Context of the kubeconfig; default: the current one");
  command->add_option("--config", o.config_file,
                      "Configuration file (config.trainer.kubeflow.org/v1alpha1)");
  command->add_option(
      "--namespace", o.ns,
      "Namespace of the Lease and the certificates; default: the pod's, else kubeflow-system");
  auto* url = command->add_option(
      "--webhook-url", o.webhook_url,
      "Serve admission from outside the cluster: how the API server reaches us, "
      "https://HOST:PORT. The webhook configurations are made, and removed at the end");
  url->check(check_webhook_url);
  command
      ->add_flag("--no-webhooks", o.no_webhooks,
                 "Serve no admission; the rules then show in status")
      ->excludes(url);
  command->add_option("--feature-gates", o.feature_gates, "NAME=true,...; wins over the file");
  command
      ->add_option(
          "--expander", all.expander,
          "Which JobSets become Jobs here: Auto, Own (all), Share (those of TrainJobs), Off")
      ->check(CLI::IsMember({"auto", "own", "share", "off"}, CLI::ignore_case));
  command->add_option("--log-level", o.log_level, "How much is logged")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  command->add_option("--log-format", all.log_format, "Log lines as text or JSON")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      ->add_option("--health-address", o.health_address,
                   "Health endpoints: HOST:PORT, :PORT, or 0 for none")
      ->check(check_bind_address);
  command
      ->add_option("--metrics-address", o.metrics_address,
                   "Metrics: HOST:PORT, :PORT, or 0 for none")
      ->check(check_bind_address);
  return command;
}

CLI::App* add_render(CLI::App& app, Everything& all) {
  CLI::App* command = app.add_subcommand(
      "render",
      "Show what would be created for the TrainJobs and JobSets of YAML files, without a cluster");
  command->add_option("FILE", all.render.files, "YAML or JSON files; - is standard input")
      ->required();
  command->add_flag("--explain", all.render.is_explained, "Say where each value came from");
  command->add_flag("--jobs", all.render.has_jobs, "Expand JobSets into Jobs and Services");
  command->add_option("--feature-gates", all.render.feature_gates, "NAME=true,...");
  add_output(*command, all.output, {"yaml", "json"});
  return command;
}

CLI::App* add_logs(CLI::App& app, Everything& all) {
  CLI::App* command = app.add_subcommand(
      "logs", "Print the logs of all pods of a TrainJob, each line with its node");
  command->add_option("JOB", all.logs.job, "Name of the TrainJob")->required();
  command->add_flag("-f,--follow", all.logs.is_followed,
                    "Wait for the start, follow restarts, end with the job");
  command->add_option("--node", all.logs.node, "Only this training node")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--tail", all.logs.tail, "Only the last lines of each pod; default: all")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--since", all.logs.since, "Only lines younger than this, such as 30s or 2h")
      ->check(check_duration);
  command->add_flag("--timestamps", all.logs.has_timestamps, "Print each line's time");
  add_cluster(*command, all.logs.cluster);
  return command;
}

void add_commands(CLI::App& app, Everything& all, std::map<const CLI::App*, Command>& commands) {
  commands[add_controller(app, all)] = [&all](Console&) {
    if (!all.expander.empty()) all.controller.expander = parse_expander_mode(all.expander);
    all.controller.log_format = all.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
    return run_controller(all.controller);
  };
  commands[add_render(app, all)] = [&all](Console& console) {
    all.render.format = parse_format(all.output, OutputFormat::kYaml);
    return run_render(all.render, console);
  };
  commands[app.add_subcommand("crds", "Print the CustomResourceDefinitions to install")] =
      [](Console& console) { return run_crds(console); };

  CLI::App* blueprints = app.add_subcommand(
      "blueprints", "Print the ClusterTrainingRuntimes that come with the program");
  blueprints->add_option("NAME", all.blueprints.names, "Only these");
  blueprints->add_flag("--list", all.blueprints.is_list, "Names and frameworks only");
  commands[blueprints] = [&all](Console& console) {
    return run_blueprints(all.blueprints, console);
  };

  CLI::App* why = app.add_subcommand(
      "why", "Say what a TrainJob is doing or waiting for, with evidence and the next step");
  why->add_option("JOB", all.why.job, "Name of the TrainJob")->required();
  add_output(*why, all.output, {"text", "json", "yaml"});
  add_cluster(*why, all.why.cluster);
  commands[why] = [&all](Console& console) {
    all.why.format = parse_format(all.output, OutputFormat::kText);
    return run_why(all.why, console);
  };
  commands[add_logs(app, all)] = [&all](Console& console) { return run_logs(all.logs, console); };

  CLI::App* version = app.add_subcommand("version", "Print the version");
  add_output(*version, all.output, {"text", "json", "yaml"});
  commands[version] = [&all](Console& console) {
    return run_version(parse_format(all.output, OutputFormat::kText), console);
  };
}

// kubectl runs its plugin `kubectl-trainer` for `kubectl trainer`.
std::string shown_name(std::string_view program) {
  const auto slash = program.rfind('/');
  const std::string_view name =
      slash == std::string_view::npos ? program : program.substr(slash + 1);
  return name == "kubectl-trainer" ? "kubectl trainer" : "trainer";
}

// One line, as every other error.
std::string one_line(const CLI::App* app, const CLI::Error& error) {
  return app->get_name() + ": " + error.what() + " (see --help)\n";
}

// CLI11 takes an unknown word for a missing subcommand.
std::string check_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::string known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == argv[1]) return {};
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return app.get_name() + ": there is no subcommand \"" + argv[1] + "\": choose from " + known;
}

}  // namespace

int run_cli(int argc, char** argv) {
  CLI::App app("Runs training jobs on Kubernetes: TrainJobs, their runtimes and JobSets.",
               shown_name(argc > 0 ? argv[0] : "trainer"));
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("trainer ") + TRAINER_VERSION);
  Everything all;
  std::map<const CLI::App*, Command> commands;
  add_commands(app, all, commands);
  app.failure_message(one_line);
  Console console{std::cin, std::cout, std::cerr};
  if (const std::string mistake = check_subcommand(app, argc, argv); !mistake.empty()) {
    console.err << mistake << '\n';
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with code 0; of the others only the sentence is printed.
    return app.exit(error, std::cout, std::cerr) == 0 ? kExitDone : kExitUsage;
  }
  return commands.at(app.get_subcommands().front())(console);
}

}  // namespace trainer
