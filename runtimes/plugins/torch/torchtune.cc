#include "runtimes/plugins/torch/torchtune.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtimes/pipeline/accelerators.hh"

namespace trainer::pipeline::torchtune {

namespace {

constexpr std::array<std::string_view, 4> kModels = {"llama3_2/1B", "llama3_2/3B", "llama3_3/70B",
                                                     "qwen2_5/1.5B"};
constexpr std::string_view kMultiNodeModel = "llama3_3/70B";

// These settings name the files that the initializers have fetched.
constexpr std::array<std::string_view, 4> kRuntimeSettings = {
    "output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file"};

std::string_view key_of(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

bool is_runtime_setting(std::string_view argument) {
  return std::find(kRuntimeSettings.begin(), kRuntimeSettings.end(), key_of(argument)) !=
         kRuntimeSettings.end();
}

std::string lower_trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return out;
}

// Returns whether some argument `...name...=true` switches a feature on.
bool is_switched_on(const std::vector<std::string>& args, std::string_view name) {
  return std::any_of(args.begin(), args.end(), [name](const std::string& argument) {
    const std::size_t equals = argument.find('=');
    return equals != std::string::npos && key_of(argument).find(name) != std::string_view::npos &&
           lower_trimmed(std::string_view(argument).substr(equals + 1)) == "true";
  });
}

std::vector<std::string> args_of(const TrainJob& job) {
  return trainer_of(job).args.value_or(std::vector<std::string>{});
}

std::string supported_models() {
  return fmt::format("{}", fmt::join(kModels, ", "));
}

void validate_qlora(const Draft& draft, const std::string& model,
                    const std::optional<IntOrString>& desired, kube::FieldErrors& errors) {
  const TrainJob& job = draft.job;
  if (model == "qwen2_5/1.5B") {
    errors.push_back(kube::invalid("spec.runtimeRef.name", job.spec.runtimeRef.name,
                                   "QLoRA is not supported for qwen2_5/1.5B model; remove "
                                   "model.quantize_base from spec.trainer.args"));
    return;
  }
  const Trainer& trainer = trainer_of(job);
  const bool is_single = (desired && desired->number == 1) ||
                         count_accelerators(draft.trainer_container(), draft.options.devices) == 1;
  if (is_single || (model != "llama3_2/1B" && model != "llama3_2/3B")) return;
  errors.push_back(kube::invalid(
      "spec.trainer.numProcPerNode",
      trainer.numProcPerNode ? kube::Json(*trainer.numProcPerNode) : kube::Json("auto"),
      fmt::format("must be auto or 1 for {} model when using QLoRA", model)));
  errors.push_back(kube::invalid(
      "spec.trainer.resourcesPerNode", trainer.resourcesPerNode.value_or(nullptr),
      fmt::format("must have gpu resource with value 1 for {} model when using QLoRA", model)));
}

}  // namespace

bool is_torchtune(const std::optional<std::vector<std::string>>& command) {
  return command && command->size() == 2 && (*command)[0] == "tune" && (*command)[1] == "run";
}

std::string model_of(std::string_view runtime_name) {
  const std::size_t first = runtime_name.find('-');
  const std::size_t second =
      first == std::string_view::npos ? first : runtime_name.find('-', first + 1);
  if (second == std::string_view::npos ||
      runtime_name.find('-', second + 1) != std::string_view::npos)
    return "";
  std::string family(runtime_name.substr(first + 1, second - first - 1));
  std::replace(family.begin(), family.end(), '.', '_');
  std::string size(runtime_name.substr(second + 1));
  std::transform(size.begin(), size.end(), size.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return family + "/" + size;
}

Tuning tuning_of(const std::vector<std::string>& args) {
  if (is_switched_on(args, "model.quantize_base") && !is_switched_on(args, "model.use_dora"))
    return Tuning::kQlora;
  const bool is_lora = std::any_of(args.begin(), args.end(), [](const std::string& argument) {
    return argument.find("model.lora_attn_modules") != std::string::npos;
  });
  return is_lora ? Tuning::kLora : Tuning::kFull;
}

Recipe recipe_for(std::int32_t nodes, bool is_single_device, Tuning tuning) {
  if (nodes > 1) return {"full_finetune_distributed", "_full_multinode"};
  const std::string where = is_single_device ? "_single_device" : "_distributed";
  const std::string suffix = is_single_device ? "_single_device" : "";
  switch (tuning) {
    case Tuning::kQlora:
      return {"lora_finetune" + where, "_qlora" + suffix};
    case Tuning::kLora:
      return {"lora_finetune" + where, "_lora" + suffix};
    case Tuning::kFull:
      break;
  }
  return {"full_finetune" + where, "_full" + suffix};
}

std::vector<std::string> command_for(std::string_view runtime_name, std::int32_t nodes,
                                     const ProcessCount& processes, std::string_view master,
                                     const std::vector<std::string>& args,
                                     const kube::Json::Array& runtime_command) {
  std::vector<std::string> command = {"tune", "run"};
  if (nodes > 1 || processes.is_several())
    command.push_back(fmt::format("--rdzv_endpoint={}:{}", master, kTrainerPort));
  const Recipe recipe = recipe_for(nodes, processes.is_single_device(), tuning_of(args));
  command.push_back(recipe.name);
  command.emplace_back("--config");
  command.push_back(model_of(runtime_name) + recipe.config_suffix);
  for (const kube::Json& word : runtime_command)
    if (word.is_string() && is_runtime_setting(word.as_string()))
      command.push_back(word.as_string());
  return command;
}

void validate(const Draft& draft, const std::optional<IntOrString>& desired,
              kube::FieldErrors& errors) {
  const TrainJob& job = draft.job;
  const std::int32_t nodes = trainer_of(job).numNodes.value_or(1);
  const std::string model = model_of(job.spec.runtimeRef.name);
  if (std::find(kModels.begin(), kModels.end(), model) == kModels.end())
    errors.push_back(kube::invalid("spec.runtimeRef.name", job.spec.runtimeRef.name,
                                   fmt::format("must have a supported pretrained model, invalid "
                                               "model configured: {}; name the runtime "
                                               "torchtune-FAMILY-SIZE after one of {}",
                                               model, supported_models())));
  if (nodes > 1 && model != kMultiNodeModel)
    errors.push_back(kube::invalid("spec.trainer.numNodes", nodes,
                                   fmt::format("must be 1 for {} model", model)));

  const std::vector<std::string> args = args_of(job);
  const Tuning tuning = tuning_of(args);
  if (tuning == Tuning::kQlora) validate_qlora(draft, model, desired, errors);
  if (tuning != Tuning::kFull && nodes > 1)
    errors.push_back(
        kube::invalid("spec.trainer.numNodes", nodes,
                      "LoRA fine-tuning is not supported for multi-node training in TorchTune"));
  for (std::size_t i = 0; i < args.size(); ++i)
    if (is_runtime_setting(args[i]))
      errors.push_back(kube::invalid(
          kube::join_index("spec.trainer.args", i), args[i],
          fmt::format(
              "must not set immutable config \"{}\" in trainer args; it is managed by the runtime",
              key_of(args[i]))));
}

}  // namespace trainer::pipeline::torchtune
