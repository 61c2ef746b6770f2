// The draft is the JobSet while it is built: the phases of the pipeline read and change it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "runtimes/pipeline/journal.hh"
#include "runtimes/pipeline/pipeline.hh"

namespace trainer::pipeline {

// Upstream fixes these names (Kubeflow Trainer, pkg/constants/constants.go).
inline constexpr std::string_view kNode = "node";
inline constexpr std::string_view kLauncher = "launcher";
inline constexpr std::string_view kTrainerStep = "trainer";
inline constexpr std::string_view kDatasetStep = "dataset-initializer";
inline constexpr std::string_view kModelStep = "model-initializer";
inline constexpr std::int32_t kTrainerPort = 29500;

// An entry of a list was replaced by a different one. The origin of the former entry is found once
// all plugins have run, see overwrites.hh.
struct Replaced {
  std::size_t job = 0;      // an index into replicatedJobs
  std::string container;    // "" for an entry of the pod
  std::string_view list;    // "env", "ports", "volumeMounts", "volumes", the name of a map
  std::string key;          // the key by which the entry is found in it
  std::string_view source;  // the source of the entry that replaced it
};

// This edits one container of a draft. Each change is noted in the journal with its source, such as
// "plugin torch", and in Draft::replaced if it replaces another entry.
class ContainerEdit {
 public:
  ContainerEdit(Journal journal, kube::Json& container, std::string path, std::string_view source,
                std::size_t job, std::vector<Replaced>& replaced)
      : journal_(journal),
        container_(container),
        path_(std::move(path)),
        source_(source),
        job_(job),
        replaced_(replaced) {}

  const kube::Json& json() const { return container_; }
  void env(kube::Json variable);  // core/v1 EnvVar, by name
  void env(std::string_view name, std::string_view value);
  void env_of_job(const std::vector<kube::Json>& variables);     // see converted_env()
  void env_field(std::string_view name, std::string_view path);  // the value is a field of the pod
  void env_completion_index(std::string_view name);              // the pod's index in its Job
  void env_from(kube::Json source);                              // core/v1 EnvFromSource, appended
  void port(std::int32_t number);                                // TCP, without a name
  void mount(kube::Json volume_mount);                           // by mountPath
  void set(std::string_view member, kube::Json value);
  void erase(std::string_view member);

 private:
  void note(std::string_view list, std::string_view key);
  void keep(std::string_view list, const kube::Json& replaced, std::string_view key);

  Journal journal_;
  kube::Json& container_;
  std::string path_;  // empty while the journal is off
  std::string_view source_;
  std::size_t job_;
  std::vector<Replaced>& replaced_;
};

// Returns what the job says about its training. A job without spec.trainer means the same as one
// with an empty spec.trainer, so plugins read it here and see no difference.
const Trainer& trainer_of(const TrainJob& job);

// Returns whether the policy is one of a framework; an empty one, or nullptr, is not.
bool has_framework(const MlPolicy* policy);

// prepare() makes the draft; the plugins then change it phase by phase. `pod_sets` and
// `spec.replicatedJobs` always have equal length and order: no plugin adds or removes a job,
// because Kueue counts them. The draft borrows job, runtime and options for its lifetime.
struct Draft {
  const TrainJob& job;
  const Runtime& runtime;
  const PipelineOptions& options;
  Journal journal;

  kube::StringMap labels;  // the JobSet's own
  kube::StringMap annotations;
  JobSetSpec spec;
  std::vector<PodSet> pod_sets;
  std::vector<DependentObject> dependents;
  // This is the trainer container's command line; plugins that wrap it replace these.
  std::optional<std::vector<std::string>> command;
  std::optional<std::vector<std::string>> args;
  std::string_view command_source = "spec.trainer.command";
  kube::FieldErrors errors;
  kube::FieldErrors ignored;  // see Built
  std::vector<Replaced> replaced;
  // A plugin's policy, if the runtime's has no framework.
  const MlPolicy* implied_ml_policy = nullptr;
  // This is the existing JobSet; it is nullptr before its creation and in admission. No update
  // changes how many pods it has, and what they ask for.
  const kube::Json* stored = nullptr;
  // This is the MPI launcher that runs the job's command without the trainer's label, because the
  // workers alone carry the label, whose command is sshd, or no job does.
  std::optional<std::size_t> unlabelled_launcher;

  Draft(const TrainJob& j, const Runtime& r, const PipelineOptions& o, Journal log)
      : job(j), runtime(r), options(o), journal(log) {}

  const std::string& name() const { return job.metadata.name; }
  void set_annotation(std::string_view key, std::string value, std::string_view source);
  const MlPolicy* ml_policy() const;  // the implied one, else the runtime's, else nullptr
  const PodGroupPolicy* pod_group_policy() const;
  // Returns whether a launcher takes part in the training (mpi.runLauncherAsNode).
  bool is_launcher_a_node() const;
  // Returns whether container `node` of this job exists without the variable. Upstream's
  // controllers and earlier versions left it out if the job has no spec.trainer. No update changes
  // the environment of a JobSet, so such a job stays as it was made.
  bool is_stored_without(std::size_t index, std::string_view variable) const;
  // Returns the regular container of this job in the stored JobSet, or nullptr.
  const kube::Json* stored_container(std::size_t index, std::string_view container = kNode) const;
  // Returns whether the replicated job runs the TrainJob's own command, image and variables in its
  // container `node`.
  bool is_trainer(std::size_t index) const;

  // These return indices into replicatedJobs and pod_sets; the first that matches.
  std::optional<std::size_t> find_job(std::string_view name) const;
  std::optional<std::size_t> find_ancestor(std::string_view ancestor) const;

  kube::Json& pod_template(std::size_t index);
  const kube::Json& pod_template(std::size_t index) const;
  // Returns the regular container of that name, or nullptr.
  const kube::Json* container(std::size_t index, std::string_view name) const;
  // Returns the trainer's own container, or null if the runtime has none.
  const kube::Json& trainer_container() const;
  // Returns the container for editing; nullopt if there is no such container. `source` must outlive
  // the edit.
  std::optional<ContainerEdit> edit(std::size_t index, std::string_view name,
                                    std::string_view source);
  ContainerEdit edit(std::size_t index, kube::Json& container, std::string_view source);
  // It searches regular containers before init containers.
  std::optional<ContainerEdit> edit_any(std::size_t index, std::string_view name,
                                        std::string_view source);
  void upsert_volume(std::size_t index, kube::Json volume, std::string_view source);
  // `map` is a map of texts in a `part` of the pods, such as the labels in "metadata".
  void set_entry(std::size_t index, std::string_view part, std::string_view map,
                 std::string_view key, std::string_view value, std::string_view source);
  void set_count(std::size_t index, std::int32_t count, std::string_view source);

  // Returns the subdomain of the pods' DNS names: network.subdomain of the JobSet, else the job's
  // name.
  std::string_view subdomain() const;
  // Returns the DNS name of a job's first pod.
  std::string first_host(std::size_t index) const;

  // These return paths of explanations: "spec.replicatedJobs[node]" and paths below it.
  std::string job_path(std::size_t index) const;
  std::string pod_path(std::size_t index) const;
  // Returns the path of an entry that set_entry() sets: "metadata.labels[KEY]",
  // "spec.schedulingGroup.KEY".
  std::string entry_path(std::size_t index, std::string_view part, std::string_view map,
                         std::string_view key) const;
};

}  // namespace trainer::pipeline
