// Scripts get the attempt and the directory of checkpoints, to continue after a restart
// (docs/decisions/0052). Upstream has neither.
#include <fmt/format.h>

#include <string>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/switches.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kEnvironmentKey = "trainer.kubeflow.org/restart-environment";
constexpr std::string_view kVolumeKey = "trainer.kubeflow.org/checkpoint-volume";
constexpr std::string_view kAttempt = "TRAINER_ATTEMPT";
// An offline command does not know the uid.
constexpr std::string_view kUnknownUid = "<metadata.uid of the TrainJob>";

// Returns "" if neither the job nor the runtime names one.
std::string_view checkpoint_volume(const Draft& draft) {
  const auto setting = find_setting(draft, kVolumeKey);
  return setting ? setting->value : std::string_view();
}

// Returns the path at which a container mounts the volume; "" if it does not.
std::string_view mount_path(const kube::Json& container, std::string_view volume) {
  for (const kube::Json& mount : container.get_array("volumeMounts"))
    if (mount.get_string("name") == volume) return mount.get_string("mountPath");
  return {};
}

// Calls `visit` with each replicated job and container that trains.
template <class AnyDraft, class Visit>
void for_each_trainer(AnyDraft& draft, const Visit& visit) {
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    if (draft.pod_sets[i].ancestor != kTrainerStep) continue;
    auto* const containers = draft.pod_template(i).find_path({"spec", "containers"});
    if (!containers || !containers->is_array()) continue;
    for (auto& container : containers->as_array()) visit(i, container);
  }
}

// No update changes the environment of a JobSet: that of an earlier version counts restarts alone.
bool counts_attempts(const Draft& draft, std::size_t job, const kube::Json& container) {
  if (draft.stored == nullptr) return draft.options.counts_attempts;
  const kube::Json* stored = draft.stored_container(job, container.get_string("name"));
  const kube::Json* variable = stored ? kube::find_env(*stored, kAttempt) : nullptr;
  return variable && variable->get_path({"valueFrom", "fieldRef"})
                         .get_string("fieldPath")
                         .starts_with("metadata.annotations");
}

class Restarts final : public Plugin {
 public:
  std::string_view source() const override { return "plugin restarts"; }
  bool is_active(const Draft& draft) const override {
    return find_setting(draft, kEnvironmentKey) || find_setting(draft, kVolumeKey);
  }
  void enforce_pod_spec(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
};

}  // namespace

void Restarts::enforce_pod_spec(Draft& draft) const {
  const std::string_view volume = checkpoint_volume(draft);
  if (!is_switched_on(draft, kEnvironmentKey, !volume.empty())) return;
  const std::string& uid = draft.job.metadata.uid;
  for_each_trainer(draft, [&](std::size_t job, kube::Json& container) {
    // The path is copied, since an edit may move what the container holds.
    std::string directory(mount_path(container, volume));
    ContainerEdit edit = draft.edit(job, container, source());
    if (counts_attempts(draft, job, container)) {
      draft.set_entry(job, "metadata", "annotations", jobset::kExecutionAttemptKey, "0", source());
      edit.env_field(kAttempt,
                     fmt::format("metadata.annotations['{}']", jobset::kExecutionAttemptKey));
    } else {
      edit.env_field(kAttempt, fmt::format("metadata.labels['{}']", jobset::kRestartAttemptKey));
    }
    if (directory.empty()) return;
    while (directory.ends_with('/')) directory.pop_back();
    edit.env("TRAINER_CHECKPOINT_DIR",
             fmt::format("{}/{}", directory, uid.empty() ? kUnknownUid : uid));
  });
}

void Restarts::validate(const Draft& draft, kube::FieldErrors& errors) const {
  check_switch(draft, kEnvironmentKey, errors);
  const auto setting = find_setting(draft, kVolumeKey);
  if (!setting || setting->value.empty()) return;
  bool is_mounted = false;
  for_each_trainer(draft, [&](std::size_t, const kube::Json& container) {
    is_mounted = is_mounted || !mount_path(container, setting->value).empty();
  });
  if (!is_mounted)
    errors.push_back(kube::invalid(
        setting->path, setting->value,
        fmt::format("no container of the trainer mounts the volume that annotation {} names: add a "
                    "volumeMount of it by a runtimePatch, or name one that is mounted",
                    kVolumeKey)));
}

void Restarts::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const auto setting = find_setting(draft, kVolumeKey);
  const auto job = draft.find_ancestor(kTrainerStep);
  if (!setting || !job) return;
  for (const kube::Json& volume : draft.pod_template(*job).get("spec").get_array("volumes"))
    if (volume.get_string("name") == setting->value && volume.find("emptyDir"))
      warnings.push_back(
          fmt::format("{}: volume \"{}\" is an emptyDir: its checkpoints end with the pod that "
                      "wrote them; use a persistentVolumeClaim",
                      setting->path, setting->value));
  bool is_writable = false;
  bool is_mounted = false;
  for_each_trainer(draft, [&](std::size_t, const kube::Json& container) {
    for (const kube::Json& mount : container.get_array("volumeMounts"))
      if (mount.get_string("name") == setting->value) {
        is_mounted = true;
        is_writable = is_writable || !mount.get_bool("readOnly");
      }
  });
  if (is_mounted && !is_writable)
    warnings.push_back(fmt::format(
        "{}: volume \"{}\" is mounted read-only, so no checkpoint can be written: leave readOnly "
        "out of its volumeMount",
        setting->path, setting->value));
}

std::unique_ptr<const Plugin> make_restarts() {
  return std::make_unique<Restarts>();
}

}  // namespace trainer::pipeline
