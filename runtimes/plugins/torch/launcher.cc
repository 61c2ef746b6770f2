#include "runtimes/plugins/torch/launcher.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace trainer::pipeline {

namespace {

using Words = std::vector<std::string>;

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool starts_processes(std::string_view word) {
  static constexpr std::array<std::string_view, 10> kPrograms = {
      "torchrun", "accelerate", "deepspeed", "tune", "sh", "bash", "dash", "ash", "zsh", "ksh"};
  return is_one_of(file_name(word), kPrograms) || word.ends_with(".sh");
}

bool is_launching_module(std::string_view module) {
  static constexpr std::array<std::string_view, 2> kModules = {"torch.distributed.run",
                                                               "torch.distributed.launch"};
  static constexpr std::array<std::string_view, 3> kPackages = {"accelerate", "deepspeed",
                                                                "torchtune"};
  return is_one_of(module, kModules) || is_one_of(module.substr(0, module.find('.')), kPackages);
}

// Returns whether it is "python" or "/opt/venv/bin/python3.12".
bool is_python(std::string_view word) {
  constexpr std::string_view kPython = "python";
  const std::string_view name = file_name(word);
  return name.starts_with(kPython) &&
         name.find_first_not_of("0123456789.", kPython.size()) == name.npos;
}

Words all_words(const CommandLine& line) {
  Words words = line.command;
  words.insert(words.end(), line.args.begin(), line.args.end());
  return words;
}

// Returns the position of the letter m or c in an option of Python, behind which the module or the
// code is: "-m", "-um", "-mpkg"; npos if it has neither.
std::size_t find_code(std::string_view option) {
  if (!option.starts_with('-') || option.starts_with("--")) return option.npos;
  const std::size_t at = option.find_first_of("mcWX");  // behind W and X is their own value
  return at == option.npos || option[at] == 'W' || option[at] == 'X' ? option.npos : at;
}

// Returns where the options of the interpreter words[0] end: at -m, at -c or at the script.
std::size_t end_of_options(std::span<const std::string> words) {
  std::size_t i = 1;
  while (i < words.size() && words[i].starts_with('-') && find_code(words[i]) == std::string::npos)
    i += words[i].ends_with('X') || words[i].ends_with('W') ? 2U : 1U;
  return i;
}

Starts what_python_starts(std::span<const std::string> words) {
  const std::size_t at = end_of_options(words);
  if (at >= words.size()) return Starts::kProgram;  // it reads its standard input
  const std::string_view word = words[at];
  std::string_view module;
  if (const std::size_t code = find_code(word); code != word.npos && word[code] == 'm') {
    module = word.substr(code + 1);
    if (module.empty() && at + 1 < words.size()) module = words[at + 1];
  }
  return is_launching_module(module) || starts_processes(word) ? Starts::kProcesses
                                                               : Starts::kPython;
}

}  // namespace

tl::expected<Launcher, kube::FieldError> launcher_of(const TrainJob& job,
                                                     const TorchPolicy& policy) {
  const auto annotation = job.metadata.annotations.find(kLauncherAnnotation);
  const bool is_annotated = annotation != job.metadata.annotations.end();
  if (!is_annotated && !policy.launcher) return Launcher::kNone;
  const std::string& name = is_annotated ? annotation->second : *policy.launcher;
  if (name == "torchrun") return Launcher::kTorchrun;
  if (name == "env") return Launcher::kEnv;
  return tl::unexpected(
      kube::not_supported(is_annotated ? kube::join_key("metadata.annotations", kLauncherAnnotation)
                                       : "spec.runtimeRef",
                          name, {"torchrun", "env"}));
}

CommandLine command_line_of(const Draft& draft) {
  const auto words_of = [&draft](const std::optional<Words>& own, std::string_view member) {
    if (own) return *own;
    Words words;
    for (const kube::Json& word : draft.trainer_container().get_array(member))
      if (word.is_string()) words.push_back(word.as_string());
    return words;
  };
  return {words_of(draft.command, "command"), words_of(draft.args, "args")};
}

Starts what_starts(const CommandLine& line) {
  if (line.command.empty()) return Starts::kUnknown;
  const std::string& program = line.command[0];
  if (is_python(program)) return what_python_starts(all_words(line));
  if (starts_processes(program)) return Starts::kProcesses;
  if (program.ends_with(".py")) return Starts::kPython;
  // These are lines such as "uv run torchrun train.py", "tini -- bash run.sh", "env A=1 python -m
  // torch.distributed.run".
  const Words words = all_words(line);
  const auto inner = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return starts_processes(word) || is_python(word) || word.ends_with(".py");
  });
  if (inner == words.end()) return Starts::kProgram;
  const bool is_launched =
      starts_processes(*inner) ||
      (is_python(*inner) && what_python_starts({inner, words.end()}) == Starts::kProcesses);
  return is_launched ? Starts::kProcesses : Starts::kProgram;
}

Words command_by_torchrun(const CommandLine& line) {
  const std::string& program = line.command[0];
  // An interpreter given by its path has libraries of its own, which the torchrun in PATH may lack.
  const bool is_path = is_python(program) && program.find('/') != program.npos;
  Words command = is_path ? Words{program, "-m", "torch.distributed.run"} : Words{"torchrun"};
  auto rest = line.command.begin();
  if (is_python(program)) {
    const Words words = all_words(line);
    const std::size_t end = end_of_options(words);
    // torchrun starts Python with -u, takes -m, and knows no other option of it.
    const bool is_plain =
        (words[end] == "-m" || !words[end].starts_with('-')) && end <= line.command.size() &&
        std::all_of(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(end),
                    [](const std::string& option) { return option == "-u"; });
    if (is_plain)
      rest += static_cast<std::ptrdiff_t>(end);
    else
      command.emplace_back("--no_python");
  }
  command.insert(command.end(), rest, line.command.end());
  return command;
}

}  // namespace trainer::pipeline
