#include "controller/cli/verb_flags.hh"

#include <CLI/CLI.hpp>

#include "controller/cli/completion_answer.hh"
#include "controller/config/values.hh"
#include "controller/kinds/registry.hh"

namespace trainer {
namespace {

CLI::App* add_get(CLI::App& app, GetOptions& options) {
  CLI::App* command = app.add_subcommand(
      "get", "Show a table of the jobs of all kinds: state, nodes, GPUs, queue, wait, age");
  command->footer(
      "GPUS counts devices of all kinds, of the pods that run at the same time. WAIT is the time "
      "from the creation to the start, or until now. JOB is a name for the other commands.");
  command->add_flag("-A,--all-namespaces", options.has_all_namespaces, "Jobs of all namespaces");
  command->add_flag("-w,--watch", options.is_watched,
                    "Then print each change, until the command is interrupted");
  command->add_option("-l,--selector", options.selector,
                      "Only jobs with these labels, such as team=a,stage!=test");
  command
      ->add_option("-o,--output", options.format,
                   "wide: reason and message, too; name: for other commands; default: a table")
      ->check(CLI::IsMember({"wide", "name", "json", "yaml"}));
  add_cluster(*command, options.cluster);
  command->get_option("--namespace")->excludes("--all-namespaces");
  command->callback([&options] {
    if (options.is_watched && (options.format == "json" || options.format == "yaml"))
      throw CLI::ValidationError("--watch", "prints lines: choose -o wide or -o name, or neither");
  });
  return command;
}

CLI::App* add_job_command(CLI::App& app, const std::string& name, const std::string& description,
                          JobOptions& options) {
  CLI::App* command = app.add_subcommand(name, description);
  add_target(*command, options.target);
  add_cluster(*command, options.cluster);
  return command;
}

CLI::App* add_cancel(CLI::App& app, CancelOptions& options) {
  CLI::App* command = add_job_command(
      app, "cancel", "End a job for good: its pods end, and it is deleted with its status and logs",
      options.job);
  command->footer(
      "No kind of job has a state `cancelled`, so that a job that is to use nothing any more is "
      "deleted. `suspend` ends its pods, too, and keeps the job. A job that has ended is refused.");
  command->add_flag("-y,--yes", options.is_confirmed,
                    "Ask no question; needed where standard input is no terminal");
  return command;
}

CLI::App* add_wait(CLI::App& app, WaitOptions& options) {
  CLI::App* command = add_job_command(app, "wait", "Wait until a job has a state", options.job);
  command->footer(
      "Exit codes: 0 it has the state; 1 the time is over, the job is gone, or it has ended "
      "otherwise, which is seen at once; 2 wrong usage; 3 the cluster cannot be reached.");
  command->add_option("--for", options.for_what, "The state, or phase=X for a phase of this name")
      ->type_name("{complete,failed,finished,running,suspended}")
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--timeout",
          [&options](const std::string& text) { options.limit = parse_duration(text); },
          "Such as 30s or 2h; 0: look once; default: no limit")
      ->check(check_by(parse_duration, "is no duration: write 30s, 15m or 2h"));
  return command;
}

CLI::App* add_rerun(CLI::App& app, RerunOptions& options) {
  CLI::App* command = add_job_command(
      app, "rerun", "Start a copy of a job under another name, in the same namespace", options.job);
  command->footer(
      "The copy has the spec, labels and annotations of the job, without `suspend` and without "
      "what "
      "belongs to the old run: status, owners, finalizers, and marks of kubectl, Kueue, Helm and "
      "Argo CD.");
  command->add_option("--name", options.name,
                      "Name of the copy; default: the first free one of JOB-r2, JOB-r3, ...");
  command->add_flag("--dry-run", options.is_dry_run, "Print the copy, and create nothing");
  add_output(*command, options.format, {"yaml", "json"});
  command->get_option("--output")->needs("--dry-run");
  return command;
}

}  // namespace

void add_verbs(CLI::App& app, VerbFlags& flags, Commands& commands) {
  commands[add_get(app, flags.get)] = [&flags](Console& console) {
    return run_get(flags.get, full_registry(), console);
  };
  CLI::App* suspend = add_job_command(
      app, "suspend", "Suspend a job: its pods end, and it keeps its name and status",
      flags.suspend);
  suspend->footer(
      "A job in a queue of Kueue is taken out of it: spec.active of its Workload becomes false.");
  commands[suspend] = [&flags](Console& console) {
    return run_suspend(flags.suspend, full_registry(), console);
  };
  CLI::App* resume = add_job_command(app, "resume", "Let a suspended job run again", flags.resume);
  resume->footer(
      "A job in a queue of Kueue may enter it again, and starts when there is room: spec.active of "
      "its Workload becomes true.");
  commands[resume] = [&flags](Console& console) {
    return run_resume(flags.resume, full_registry(), console);
  };
  commands[add_cancel(app, flags.cancel)] = [&flags](Console& console) {
    return run_cancel(flags.cancel, full_registry(), console);
  };
  commands[add_wait(app, flags.wait)] = [&flags](Console& console) {
    return run_wait(flags.wait, full_registry(), console);
  };
  commands[add_rerun(app, flags.rerun)] = [&flags](Console& console) {
    return run_rerun(flags.rerun, full_registry(), console);
  };
  CLI::App* completion = app.add_subcommand(
      "completion", "Print a script with which bash or zsh completes words of this program");
  completion->add_option("INTERPRETER", flags.interpreter, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  completion->footer(
      "For this shell: source <(trainer completion bash). For all: put that line into ~/.bashrc, "
      "or "
      "with zsh into ~/.zshrc, after compinit.");
  commands[completion] = [&flags](Console& console) {
    return run_completion(flags.interpreter, console);
  };
}

}  // namespace trainer
