#include "controller/cli/upstream_flags.hh"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>

namespace trainer {

void add_training_operator_flags(CLI::App& command, ControllerOptions& options) {
  const auto add = [&command](const char* name, auto& target, const char* help) {
    return command.add_option(name, target, help)->group("V1 jobs");
  };
  TrainingOperatorFlags& flags = options.training_operator;
  add("--enable-scheme", flags.schemes,
      "Reconcile a kind of V1 jobs, such as pytorchjob; several times for several kinds, without a "
      "value or with \"all\" for all")
      ->allow_extra_args(false);
  add("--gang-scheduler-name", flags.gang_scheduler,
      "Scheduler of whole V1 jobs: volcano, or the name of one with scheduler-plugins");
  add("--pytorch-init-container-image", flags.init_container_image,
      "Image with which workers of PyTorchJobs wait for their master");
  add("--pytorch-init-container-max-tries", flags.init_container_tries, "How often they look");
  add("--pytorch-init-container-template-file", flags.init_container_template_file,
      "File with the containers that wait instead");
  add("--mpi-kubectl-delivery-image", flags.kubectl_delivery_image,
      "Image that brings kubectl to launchers of MPIJobs");
  add("--controller-threads", flags.threads, "Reconciles of a kind of V1 jobs at a time, above 32")
      ->check(CLI::PositiveNumber);
  command
      .add_flag("--marks-finished-jobs", flags.marks_finished,
                "Mark jobs that have ended, so that they do not run again after a restore "
                "(marksFinishedJobs)")
      ->group("V1 jobs");
  // Settings that are elsewhere in the configuration file are not shown.
  const auto hide = [&command](const char* name, auto& target) {
    return command.add_option(name, target)->group("");
  };
  hide("--kube-api-qps", flags.qps)->check(CLI::NonNegativeNumber);
  hide("--kube-api-burst", flags.burst)->check(CLI::NonNegativeNumber);
  hide("--leader-election-id", flags.lease);
  hide("--webhook-server-port", flags.webhook_port);
  hide("--webhook-service-name", flags.webhook_service);
  hide("--webhook-secret-name", flags.webhook_secret);
  hide("--metrics-bind-address", options.metrics_address);
  hide("--health-probe-bind-address", options.health_address);
  command
      .add_flag_function("--leader-elect",
                         [&flags](std::int64_t count) { flags.leader_elect = count > 0; })
      ->group("");
}

bool use_upstream_words(const CLI::App& app, std::string_view program,
                        std::vector<std::string>& words) {
  const auto commands = app.get_subcommands({});
  const bool has_command = !words.empty() && std::any_of(commands.begin(), commands.end(),
                                                         [&words](const CLI::App* command) {
                                                           return command->check_name(words[0]);
                                                         });
  const bool has_file = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("--config") || word.starts_with("-config");
  });
  const bool is_manager =
      program.substr(program.rfind('/') + 1) == "manager" && !has_command && !has_file;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    if (is_manager && word.size() > 2 && word[0] == '-' && word[1] != '-') word.insert(0, "-");
    const bool is_last = i + 1 == words.size() || words[i + 1].starts_with('-');
    if (word == "--enable-scheme" && is_last) word += "=all";
  }
  if (is_manager) words.insert(words.begin(), "controller");
  return is_manager;
}

}  // namespace trainer
