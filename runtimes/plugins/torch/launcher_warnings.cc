// Warns at admission about commands that do not become one training.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "kube/model/pod_checks.hh"
#include "kube/model/text.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/plugins/torch/launcher.hh"
#include "runtimes/plugins/torch/process_count.hh"

namespace trainer::pipeline {

namespace {

// Returns the first words of a command line, up to 60 bytes, or up to a word with a control
// character, which a warning cannot have.
std::string beginning_of(const CommandLine& line) {
  constexpr std::size_t kMaxBytes = 60;
  std::string text;
  for (const auto* words : {&line.command, &line.args})
    for (const std::string& word : *words) {
      if (text.size() + word.size() > kMaxBytes ||
          std::any_of(word.begin(), word.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
        return text + " ...";
      text += (text.empty() ? "" : " ") + word;
    }
  return text;
}

// Returns whether it is the text of a script that starts Python and nothing that starts processes.
bool is_script_with_python(const CommandLine& line) {
  static constexpr std::array<std::string_view, 5> kLaunching = {"torchrun", "torch.distributed",
                                                                 "accelerate", "deepspeed", "tune"};
  bool has_text = false;
  bool has_python = false;
  for (const auto* words : {&line.command, &line.args})
    for (const std::string& word : *words) {
      has_text = has_text || word == "-c" || word == "-ec" || word == "-lc";
      has_python = has_python || word.find("python") != word.npos;
      if (word.find(".sh") != word.npos ||
          std::any_of(kLaunching.begin(), kLaunching.end(), [&word](std::string_view program) {
            return word.find(program) != word.npos;
          }))
        return false;
    }
  return has_text && has_python;
}

// This is the size of the whole job, as far as it is known in admission.
struct Size {
  std::int32_t nodes = 1;
  std::int64_t devices = 0;    // the devices of a node
  std::int64_t processes = 0;  // the processes of a node
};

std::string alone(const Size& size) {
  return size.nodes > 1 ? fmt::format("each of the {} nodes runs a training of its own", size.nodes)
                        : fmt::format("one process runs where {} were expected", size.processes);
}

// Warns about the annotation of a job whose command is not changed.
void warn_about_annotation(const Draft& draft, const CommandLine& line, const Size& size,
                           std::vector<std::string>& warnings) {
  if (!draft.job.metadata.annotations.contains(kLauncherAnnotation)) return;
  const std::string path = kube::join_key("metadata.annotations", kLauncherAnnotation);
  const Starts starts = what_starts(line);
  if (starts == Starts::kUnknown)
    warnings.push_back(fmt::format(
        "{}: torchrun has no effect on the image's own command, which is not known here: write the "
        "command into spec.trainer.command",
        path));
  else if (starts == Starts::kProcesses && is_script_with_python(line))
    warnings.push_back(
        fmt::format("{}: torchrun has no effect on a shell, and \"{}\" does not start torchrun, so "
                    "{}: start torchrun in it, or leave the shell out",
                    path, beginning_of(line), alone(size)));
}

// Warns about options of torchrun that contradict the job, which sets the same values by PET_*
// variables. Options win.
void warn_about_options(const CommandLine& line, std::int32_t nodes,
                        std::vector<std::string>& warnings) {
  const TorchrunOptions options = torchrun_options_of(line);
  if (options.is_standalone && nodes > 1)
    warnings.push_back(
        fmt::format("spec.trainer.command: with --standalone each of the {} nodes runs a "
                    "training of its own; "
                    "leave it out",
                    nodes));
  if (options.nodes && *options.nodes != nodes)
    warnings.push_back(fmt::format(
        "spec.trainer.command: torchrun waits for {} nodes as --nnodes says, and the job has {}; "
        "leave the option out: torchrun knows spec.trainer.numNodes",
        *options.nodes, nodes));
}

}  // namespace

TorchrunOptions torchrun_options_of(const CommandLine& line) {
  TorchrunOptions options;
  std::vector<std::string> words = line.command;
  words.insert(words.end(), line.args.begin(), line.args.end());
  auto word = std::find_if(words.begin(), words.end(), [](const std::string& one) {
    return one == "torchrun" || one.ends_with("/torchrun") || one == "torch.distributed.run";
  });
  if (word == words.end()) return options;
  const auto is_script = [](const std::string& one) {
    return one.ends_with(".py") || one == "-m" || one == "--module";
  };
  for (++word; word != words.end() && !is_script(*word); ++word) {
    const std::size_t equals = std::min(word->find('='), word->size());
    const std::string_view name = std::string_view(*word).substr(0, equals);
    if (name == "--standalone") options.is_standalone = true;
    if (name != "--nnodes") continue;
    std::string_view value = std::string_view(*word).substr(std::min(equals + 1, word->size()));
    if (equals == word->size() && std::next(word) != words.end()) value = *std::next(word);
    options.nodes = kube::parse_number<std::int32_t>(value);
  }
  return options;
}

void warn_about_command(const Draft& draft, const TorchPolicy& policy,
                        std::vector<std::string>& warnings) {
  const auto launcher = launcher_of(draft.job, policy);
  const auto index = draft.find_ancestor(kTrainerStep);
  if (!launcher || !index) return;
  const auto desired = desired_processes(draft, policy);
  Size size;
  size.nodes = trainer_of(draft.job).numNodes.value_or(draft.pod_sets[*index].count);
  size.devices = count_accelerators(draft.trainer_container(), draft.options.devices);
  size.processes = desired && desired->number ? *desired->number : size.devices;
  if (*launcher == Launcher::kEnv) {
    if (size.devices > 1 && !(desired && desired->number))
      warnings.push_back(
          fmt::format("spec.trainer.resourcesPerNode: launcher env starts one process a node, and "
                      "each node has {} devices; use launcher torchrun for one process a device",
                      size.devices));
    return;
  }
  const CommandLine line = command_line_of(draft);
  warn_about_options(line, size.nodes, warnings);
  if (size.nodes <= 1 && size.processes <= 1) return;
  // Another warning is about such a command.
  if (!line.command.empty() && kube::several_words_in_one(line.command.front())) return;
  const Starts starts = what_starts(line);
  const bool stays_alone =
      starts == Starts::kProgram || (starts == Starts::kPython && *launcher == Launcher::kNone);
  if (!stays_alone) return warn_about_annotation(draft, line, size, warnings);
  const std::string where = draft.command
                                ? "spec.trainer.command"
                                : fmt::format("spec.runtimeRef: the command of runtime \"{}\"",
                                              draft.job.spec.runtimeRef.name);
  const std::string ways_out =
      starts == Starts::kPython
          ? fmt::format("annotate the TrainJob with {}: torchrun, which starts it by torchrun, or",
                        kLauncherAnnotation)
          : std::string("begin it with torchrun --no_python, or annotate the TrainJob");
  warnings.push_back(fmt::format(
      "{}: \"{}\" does not start torchrun, so {}; {} with {}: env, for a program that calls "
      "init_process_group() in one process a node",
      where, beginning_of(line), alone(size), ways_out, kLauncherAnnotation));
}

}  // namespace trainer::pipeline
