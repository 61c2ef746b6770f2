// The trainer's container gets spec.trainer here (Kubeflow Trainer,
// pkg/runtime/framework/plugins/jobset).
#include <string>
#include <vector>

#include "runtimes/pipeline/plugin.hh"

namespace trainer::pipeline {

namespace {

// An empty list removes the member, so that the image's own command or arguments count.
void set_words(ContainerEdit container, std::string_view member,
               const std::vector<std::string>& words) {
  if (words.empty()) return container.erase(member);
  container.set(member, kube::Json(kube::Json::Array(words.begin(), words.end())));
}

// Under MPI a job named `node` runs sshd, even if it has the trainer's label: its command line is
// the runtime's.
bool runs_sshd(const Draft& draft, const PodSet& set) {
  const MlPolicy* policy = draft.ml_policy();
  return policy != nullptr && policy->mpi && set.name == kNode &&
         draft.find_job(kLauncher).has_value();
}

void override_container(Draft& draft, std::size_t index, bool with_command) {
  if (draft.container(index, kNode) == nullptr) return;
  const auto edit = [&](std::string_view source) { return draft.edit(index, kNode, source); };
  if (with_command) {
    if (draft.command) set_words(*edit(draft.command_source), "command", *draft.command);
    if (draft.args) set_words(*edit("spec.trainer.args"), "args", *draft.args);
  }
  const Trainer& trainer = trainer_of(draft.job);
  if (trainer.image) edit("spec.trainer.image")->set("image", *trainer.image);
  edit("spec.trainer.env")->env_of_job(trainer.env);
}

class TrainerOverrides final : public Plugin {
 public:
  std::string_view source() const override { return "spec.trainer"; }
  bool is_active(const Draft&) const override { return true; }
  void enforce_pod_spec(Draft& draft) const override;
};

}  // namespace

void TrainerOverrides::enforce_pod_spec(Draft& draft) const {
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    const PodSet& set = draft.pod_sets[i];
    const bool is_trainer = draft.is_trainer(i);
    // The nodes are numbered by the completion index of one Job.
    if (set.ancestor == kTrainerStep) draft.spec.replicatedJobs[i].replicas = 1;
    // If the launcher trains, too, it and the workers run one program: same image, same env.
    const bool is_mpi_node = set.name == kNode && draft.is_launcher_a_node();
    if (is_trainer || is_mpi_node)
      override_container(draft, i, is_trainer && !runs_sshd(draft, set));
  }
}

std::unique_ptr<const Plugin> make_overrides() {
  return std::make_unique<TrainerOverrides>();
}

}  // namespace trainer::pipeline
