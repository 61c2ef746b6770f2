#include "controller/cli/local_flags.hh"

#include <CLI/CLI.hpp>

#include "controller/cli/local_daemon.hh"
#include "controller/cli/run_flags.hh"
#include "controller/kinds/registry.hh"

namespace trainer {
namespace {

void add_state(CLI::App& command, std::string& state) {
  state = default_local_state().string();
  command.add_option("--state", state, "Directory of what local mode keeps")
      ->envname("TRAINER_LOCAL_STATE")
      ->type_name("DIR")
      ->check([](const std::string& text) { return text.empty() ? "name a directory" : ""; })
      ->capture_default_str();
}

void add_namespace(CLI::App& command, std::string& ns) {
  command.add_option("-n,--namespace", ns, "Namespace; default: default");
}

void add_mount(CLI::App& command, std::vector<std::string>& mounts, const char* whose) {
  command
      .add_option("--mount", mounts,
                  std::string("DIR:/PATH: a directory of this machine in ") + whose)
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
}

CLI::App* add_up(CLI::App& local, LocalFlags& flags) {
  LocalUpOptions& o = flags.up;
  CLI::App* command = local.add_subcommand("up", "Start the API server, controller and node");
  add_state(*command, o.state);
  command->add_flag_callback(
      "--no-node", [&o] { o.has_node = false; }, "Run no pods: an API server for tests");
  command->add_flag_callback(
      "--no-controller", [&o] { o.has_controller = false; },
      "Leave the objects to another controller");
  command
      ->add_option(
          "--tier", o.tier,
          "How pods are kept apart: 1 user namespaces and addresses, 2 addresses, 3 neither; "
          "default: what this machine offers")
      ->check(CLI::Range(1, 3));
  add_mount(*command, o.mounts, "all pods");
  command
      ->add_option(
          "--capacity", o.capacity,
          "NAME=AMOUNT, such as nvidia.com/gpu=8: what the node has, instead of what is found")
      ->allow_extra_args(false);
  command->add_option("--audit", o.audit, "File for a line of JSON for each request");
  command
      ->add_option("--idle", o.idle_seconds,
                   "Seconds without work after which it ends; 0: it stays")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command->add_flag("--foreground", o.is_foreground,
                    "Stay in the foreground, as for a service manager");
  return command;
}

CLI::App* add_run(CLI::App& local, LocalFlags& flags) {
  LocalRunOptions& o = flags.run;
  CLI::App* command = local.add_subcommand("run",
                                           "Run the TrainJobs of YAML files here, or `-- "
                                           "COMMAND...`: apply, show the output, exit 0 where all "
                                           "are Complete");
  add_files(*command, o.files);
  command->get_option("--filename")->required(false);
  add_state(*command, o.state);
  add_namespace(*command, o.ns);
  add_job_flags(*command, o.job);
  add_mount(*command, o.mounts, "the jobs' pods");
  command->add_flag(
      "--fit", o.is_fitted,
      "Cut nodes, GPUs, CPUs and memory to what this machine has, and say what was cut");
  add_run_mode(*command, o.mode);
  return command;
}

CLI::App* add_logs(CLI::App& local, LocalFlags& flags) {
  LogsOptions& logs = flags.logs.logs;
  CLI::App* command =
      local.add_subcommand("logs", "Print the logs of all pods of a job, each line with its node");
  add_state(*command, flags.logs.state);
  add_logs_flags(*command, logs);
  add_namespace(*command, logs.cluster.ns);
  return command;
}

CLI::App* add_ui(CLI::App& local, LocalFlags& flags) {
  CLI::App* command =
      local.add_subcommand("ui", "Show the jobs in a browser, as `trainer ui` does, read-only");
  add_state(*command, flags.ui.state);
  add_ui_flags(*command, flags.ui.ui);
  add_namespace(*command, flags.ui.ui.cluster.ns);
  return command;
}

CLI::App* add_stop(CLI::App& local, LocalFlags& flags) {
  LocalStopOptions& o = flags.stop;
  CLI::App* command = local.add_subcommand("stop", "Suspend TrainJobs: their processes end");
  command->add_option("JOB", o.jobs, "Names of TrainJobs")->required();
  add_state(*command, o.state);
  add_namespace(*command, o.ns);
  command->add_flag("--kill", o.is_killed, "Give them no time to end");
  return command;
}

CLI::App* add_status(CLI::App& local, LocalFlags& flags) {
  CLI::App* command = local.add_subcommand("status", "Show the daemon, the machine and the jobs");
  add_state(*command, flags.status.state);
  add_output(*command, flags.status.format, {"text", "json", "yaml"});
  return command;
}

}  // namespace

void add_local(CLI::App& app, LocalFlags& flags, Commands& commands) {
  CLI::App* local = app.add_subcommand(
      "local", "Run TrainJobs on this machine, as processes, without a cluster (Linux only)");
  local->require_subcommand(1);
  commands[add_run(*local, flags)] = [&flags](Console& console) {
    return run_local_run(flags.run, full_registry(), console);
  };
  commands[add_logs(*local, flags)] = [&flags](Console& console) {
    return run_local_logs(flags.logs, full_registry(), console);
  };
  commands[add_ui(*local, flags)] = [&flags](Console& console) {
    return run_local_ui(flags.ui, full_registry(), console);
  };
  commands[add_stop(*local, flags)] = [&flags](Console& console) {
    return run_local_stop(flags.stop, console);
  };
  commands[add_up(*local, flags)] = [&flags](Console& console) {
    return run_local_up(flags.up, console);
  };
  CLI::App* down = local->add_subcommand("down", "Suspend what runs, and end the daemon");
  add_state(*down, flags.state);
  commands[down] = [&flags](Console& console) { return run_local_down(flags.state, console); };
  commands[add_status(*local, flags)] = [&flags](Console& console) {
    return run_local_status(flags.status, console);
  };
  CLI::App* env = local->add_subcommand(
      "env", "Print assignments for eval: kubectl and the SDK then use local mode");
  add_state(*env, flags.state);
  commands[env] = [&flags](Console& console) { return run_local_env(flags.state, console); };
}

}  // namespace trainer
