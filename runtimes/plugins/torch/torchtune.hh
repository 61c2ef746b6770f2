// torchtune runs as `tune run` with the recipe and configuration that fit the job (Kubeflow
// Trainer, pkg/runtime/framework/plugins/torch).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "runtimes/pipeline/draft.hh"
#include "runtimes/plugins/torch/process_count.hh"

namespace trainer::pipeline::torchtune {

// Returns true for a trainer command of exactly `tune run`.
bool is_torchtune(const std::optional<std::vector<std::string>>& command);

// Returns "llama3_2/1B" for "torchtune-llama3.2-1b"; "" if the runtime's name does not have three
// parts.
std::string model_of(std::string_view runtime_name);

enum class Tuning { kFull, kLora, kQlora };
Tuning tuning_of(const std::vector<std::string>& args);

struct Recipe {
  std::string name;           // "full_finetune_distributed"
  std::string config_suffix;  // "_full"
  friend bool operator==(const Recipe&, const Recipe&) = default;
};
Recipe recipe_for(std::int32_t nodes, bool is_single_device, Tuning tuning);

// Returns the whole command. `runtime_command` is the template's: its settings of output and model
// files are kept.
std::vector<std::string> command_for(std::string_view runtime_name, std::int32_t nodes,
                                     const ProcessCount& processes, std::string_view master,
                                     const std::vector<std::string>& args,
                                     const kube::Json::Array& runtime_command);

// Checks the rules for torchtune. `desired` is the processes per node, if job or runtime have a
// number. The number of nodes that is checked is the job's own, by default 1: a job is not refused
// for its runtime's number.
void validate(const Draft& draft, const std::optional<IntOrString>& desired,
              kube::FieldErrors& errors);

}  // namespace trainer::pipeline::torchtune
