#include "controller/cli/controller_flags.hh"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "controller/cli/upstream_flags.hh"
#include "controller/cli/zap_flags.hh"
#include "controller/config/configuration.hh"
#include "controller/config/values.hh"
#include "controller/kinds/registry.hh"
#include "controller/process/run.hh"

namespace trainer {
namespace {

CLI::Validator check_bind_address() {
  return check_by([](const std::string& text) { return text == "0" || parse_endpoint(text); },
                  "is no address: write HOST:PORT, :PORT, or 0 for none");
}

// These are flags of upstream's manager, accepted for its Deployments: not shown in --help.
void add_upstream(CLI::App& command, ControllerFlags& flags) {
  command.add_option("--zap-log-level", flags.zap_level)->group("");
  command.add_option("--zap-encoder", flags.zap_encoder)->group("");
  command.add_flag("--zap-devel")->group("");
  command.add_option("--zap-stacktrace-level")->group("");
  command.add_option("--zap-time-encoding")->group("");
}

// Lists the controllers, by their keys in the configuration's groupKindConcurrency.
std::string controllers_footer() {
  std::string text = "Controllers, with the objects that each reconciles at a time:";
  for (const KindRegistration& kind : full_registry()) {
    const kube::ControllerRegistration& controller = kind.controller;
    text += fmt::format("\n  {:<32} {:>2}{}",
                        controller.group_kind.empty() ? controller.name : controller.group_kind,
                        controller.workers,
                        controller.group_kind.empty() ? ""
                        : kind.option.empty()         ? ", see groupKindConcurrency"
                                                      : ", with --enable-scheme");
  }
  return text;
}

CLI::App* add_command(CLI::App& app, ControllerFlags& flags) {
  CLI::App* command =
      app.add_subcommand("controller", "Run the controller, in the cluster or outside it");
  ControllerOptions& o = flags.options;
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
      "Serve admission from outside the cluster: the URL by which the API server reaches this "
      "process, https://HOST:PORT. The webhook configurations are created, and removed at the end. "
      "The process listens on PORT, unless the configuration file sets webhook.port (for a "
      "tunnel)");
  url->check(
      check_by(parse_https_url,
               "cannot be reached by the API server: write https://HOST:PORT, without a path"));
  command->add_option("--webhook-client-ca", o.webhook_client_ca,
                      "File of CA certificates (PEM): only clients with a certificate that one of "
                      "them has signed may send admission reviews; wins over the file");
  command
      ->add_flag("--no-webhooks", o.no_webhooks,
                 "Serve no admission webhooks; violations of the rules are then reported in status")
      ->excludes(url);
  command->add_option("--feature-gates", o.feature_gates, "NAME=true,...; wins over the file");
  command
      ->add_option(
          "--expander", flags.jobset_controller_mode,
          "Which JobSets become Jobs here: Auto, Own (all), Share (those of TrainJobs), Off")
      ->check(CLI::IsMember({"auto", "own", "share", "off"}, CLI::ignore_case));
  command->add_option("--log-level", o.log_level, "How much is logged")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  command->add_option("--log-format", flags.log_format, "Log lines as text or JSON")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      ->add_option("--health-address", o.health_address,
                   "Health endpoints: HOST:PORT, :PORT, or 0 for none")
      ->check(check_bind_address());
  command
      ->add_option("--metrics-address", o.metrics_address,
                   "Metrics: HOST:PORT, :PORT, or 0 for none")
      ->check(check_bind_address());
  add_training_operator_flags(*command, o);
  command
      ->add_flag("--enable-mpijob-v2", o.mpi_operator.is_enabled,
                 "Reconcile MPIJobs of kubeflow.org/v2beta1 (mpiOperator.enabled)")
      ->group("MPIJobs of v2beta1");
  command
      ->add_option("--mpi-gang-scheduling", o.mpi_operator.gang_scheduler,
                   "Scheduler of whole MPIJobs: volcano, or the name of one with scheduler-plugins")
      ->group("MPIJobs of v2beta1");
  add_upstream(*command, flags);
  command->footer(controllers_footer());
  return command;
}

// This program's own flags win over upstream's. CLI11's messages do not name hidden options, so
// their values are checked here. Returns false after an error message if one is wrong.
bool use_zap_flags(ControllerFlags& flags, const CLI::App& command, Console& console) {
  const auto is_good = [&console](const auto& value, std::string_view flag, const std::string& text,
                                  std::string_view problem) {
    if (value || text.empty()) return true;
    console.err << console.program << ": " << flag << ": \"" << text << "\" " << problem << '\n';
    return false;
  };
  const auto level = level_of_zap(flags.zap_level);
  const auto format = format_of_zap(flags.zap_encoder);
  if (!is_good(level, "--zap-log-level", flags.zap_level,
               "is no level: write debug, info, error, panic or a number from 1 on") ||
      !is_good(format, "--zap-encoder", flags.zap_encoder, "is no encoder: write json or console"))
    return false;
  if (level && command.count("--log-level") == 0) flags.options.log_level = *level;
  if (format && command.count("--log-format") == 0) flags.options.log_format = *format;
  return true;
}

}  // namespace

void add_controller(CLI::App& app, ControllerFlags& flags, Commands& commands) {
  CLI::App* command = add_command(app, flags);
  commands[command] = [&flags, command](Console& console) {
    if (!flags.jobset_controller_mode.empty())
      flags.options.jobset_controller_mode =
          parse_jobset_controller_mode(flags.jobset_controller_mode);
    flags.options.log_format = flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
    if (!use_zap_flags(flags, *command, console)) return static_cast<int>(kExitUsage);
    return run_controller(flags.options);
  };
}

}  // namespace trainer
