#include "runtimes/pipeline/process_checks.hh"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "kube/model/quantity.hh"
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/pod_sets.hh"

namespace trainer::pipeline {

namespace {

struct Field {
  std::string path;
  kube::Json value;
};

// Returns the largest amount of the job from which processes are counted; nullopt if it names none.
std::optional<Field> counted_amount(const Draft& draft) {
  std::optional<Field> found;
  std::optional<kube::Quantity> most;
  const auto& own = trainer_of(draft.job).resourcesPerNode;
  if (!own) return found;
  for (const char* kind : {"limits", "requests"})
    for (const auto& [name, amount] : own->get_object(kind)) {
      const auto number = kube::Quantity::read(amount);
      if (!number || (most && !(*most < *number))) continue;
      if (name != "cpu" && !is_accelerator(name, draft.options.devices)) continue;
      most = *number;
      found = Field{kube::join_key(fmt::format("spec.trainer.resourcesPerNode.{}", kind), name),
                    amount};
    }
  return found;
}

}  // namespace

void check_processes(const Draft& draft, std::size_t index, const NodeProcesses& processes,
                     kube::FieldErrors& errors) {
  std::string why = refusal_of_processes(expected_pods(draft, index), processes.number);
  if (why.empty()) return;
  std::optional<Field> field;
  if (!processes.is_desired)
    field = counted_amount(draft);
  else if (const auto& own = trainer_of(draft.job).numProcPerNode)
    field = Field{"spec.trainer.numProcPerNode", *own};
  if (!field) {
    field = Field{"spec.runtimeRef.name", draft.job.spec.runtimeRef.name};
    why = fmt::format("in job \"{}\" of {} \"{}\", {}", draft.pod_sets[index].name,
                      draft.runtime.kind, draft.runtime.metadata.name, why);
  }
  errors.push_back(kube::invalid(std::move(field->path), std::move(field->value), std::move(why)));
}

}  // namespace trainer::pipeline
