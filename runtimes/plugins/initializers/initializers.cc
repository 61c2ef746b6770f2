// Datasets and models are fetched before the training (Kubeflow Trainer,
// pkg/runtime/framework/plugins/jobset).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/plugins/data_cache/data_cache.hh"
#include "runtimes/views/text.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kVolume = "initializer";
constexpr std::string_view kStorageUri = "STORAGE_URI";

const InitializerSource* source_of(const TrainJob& job, std::string_view step) {
  if (!job.spec.initializer) return nullptr;
  const auto& source =
      step == kModelStep ? job.spec.initializer->model : job.spec.initializer->dataset;
  return source ? &*source : nullptr;
}

const kube::Json* find_uri(const InitializerSource& source) {
  const auto at = std::find_if(source.env.begin(), source.env.end(), [](const kube::Json& one) {
    return one.get_string("name") == kStorageUri;
  });
  return at == source.env.end() ? nullptr : &*at;
}

void apply(const InitializerSource& desired, ContainerEdit& container) {
  // Earlier versions accepted a job that sets both, and env wins there.
  std::vector<kube::Json> variables;
  if (desired.storageUri)
    variables.push_back(
        kube::Json::object({{"name", kStorageUri}, {"value", *desired.storageUri}}));
  variables.insert(variables.end(), desired.env.begin(), desired.env.end());
  container.env_of_job(variables);
  if (desired.secretRef)
    container.env_from(kube::Json::object(
        {{"secretRef", kube::Json::object({{"name", desired.secretRef->get_string("name")}})}}));
}

bool mounts(const kube::Json& container, std::string_view volume) {
  const auto& list = container.get_array("volumeMounts");
  return std::any_of(list.begin(), list.end(), [volume](const kube::Json& mount) {
    return mount.get_string("name") == volume;
  });
}

// Returns the sources of those volumes of the container that outlive the pod and reach other pods.
std::vector<kube::Json> shared_sources(const kube::Json& pod_template,
                                       const kube::Json& container) {
  static constexpr std::array<std::string_view, 4> kShared = {"persistentVolumeClaim", "nfs",
                                                              "hostPath", "csi"};
  std::vector<kube::Json> sources;
  for (kube::Json volume : pod_template.get("spec").get_array("volumes")) {
    if (!mounts(container, volume.get_string("name"))) continue;
    volume.erase("name");
    if (std::any_of(kShared.begin(), kShared.end(),
                    [&volume](std::string_view source) { return volume.find(source) != nullptr; }))
      sources.push_back(std::move(volume));
  }
  return sources;
}

// Guides for Trainer 2.1 and 2.2 name the volume freely, and define it with overrides.
bool reaches_trainer(const Draft& draft, std::size_t initializer, const kube::Json& container) {
  const auto trainer = draft.find_ancestor(kTrainerStep);
  if (!trainer) return false;
  const auto used = shared_sources(draft.pod_template(*trainer), draft.trainer_container());
  const auto filled = shared_sources(draft.pod_template(initializer), container);
  return std::find_first_of(filled.begin(), filled.end(), used.begin(), used.end()) != filled.end();
}

void check_step(const Draft& draft, std::string_view step, std::string_view config,
                kube::FieldErrors& errors) {
  if (source_of(draft.job, step) == nullptr) return;
  const auto refuse = [&](const std::string& detail) {
    errors.push_back(kube::invalid("spec.runtimeRef", draft.job.spec.runtimeRef.name, detail));
  };
  const auto index = draft.find_job(step);
  if (!index) {
    refuse(
        fmt::format("must have {0} job when trainJob is configured with input {1}; choose a "
                    "runtime with a job named {0}, "
                    "or remove spec.initializer.{2}",
                    step, config, step == kDatasetStep ? "dataset" : "model"));
    return;
  }
  const kube::Json* container = kube::find_any_container(draft.pod_template(*index), step);
  if (container == nullptr) {
    refuse(
        fmt::format("must have container with name - {0} in the {0} job; name it so in the "
                    "runtime",
                    step));
  } else if (!mounts(*container, kVolume) && !reaches_trainer(draft, *index, *container)) {
    refuse(
        fmt::format("must have volumeMount with name - {0} in container {1} of the {1} job; add a "
                    "volume {0} to this job and to the one that trains, mounted at /workspace",
                    kVolume, step));
  }
}

// Two values for one variable are an error: it is unknown which one is meant.
void check_uri(const InitializerSource* source, const std::string& path,
               kube::FieldErrors& errors) {
  if (source == nullptr || !source->storageUri) return;
  const kube::Json* variable = find_uri(*source);
  if (variable == nullptr) return;
  const kube::Json* from = variable->find("valueFrom");
  const bool has_source = from != nullptr && !from->is_null();
  if (!has_source && variable->get_string("value") == *source->storageUri) return;
  const auto index = static_cast<std::size_t>(variable - source->env.data());
  errors.push_back(kube::invalid(
      fmt::format("{}.env[{}]", path, index),
      has_source ? *from : kube::Json(variable->get_string("value")),
      "{} is another source than {}.storageUri, \"{}\", which sets this variable: leave one of "
      "the two out",
      kStorageUri, path, keep_head(*source->storageUri, 300)));
}

class Initializers final : public Plugin {
 public:
  std::string_view source() const override { return "spec.initializer"; }
  bool is_active(const Draft& draft) const override;
  void enforce_pod_spec(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace

bool Initializers::is_active(const Draft& draft) const {
  return draft.find_ancestor(kDatasetStep) || draft.find_ancestor(kModelStep) ||
         draft.job.spec.initializer;
}

void Initializers::enforce_pod_spec(Draft& draft) const {
  const std::string_view of_dataset = dataset_step(draft);
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    const std::string& step = draft.pod_sets[i].ancestor;
    if (step != kDatasetStep && step != kModelStep && step != of_dataset) continue;
    draft.spec.replicatedJobs[i].replicas = 1;
    const bool has_source = step == of_dataset || step == kModelStep;
    const InitializerSource* desired = has_source ? source_of(draft.job, step) : nullptr;
    if (desired == nullptr) continue;
    if (auto container = draft.edit_any(
            i, dataset_container(draft, i),
            step == kModelStep ? "spec.initializer.model" : "spec.initializer.dataset"))
      apply(*desired, *container);
  }
}

void Initializers::validate(const Draft& draft, kube::FieldErrors& errors) const {
  // A data cache keeps no files, so its container needs no volume.
  if (dataset_step(draft) == kDatasetStep) check_step(draft, kDatasetStep, "datasetConfig", errors);
  check_step(draft, kModelStep, "modelConfig", errors);
  for (const std::string_view step : {kDatasetStep, kModelStep})
    check_uri(source_of(draft.job, step),
              step == kModelStep ? "spec.initializer.model" : "spec.initializer.dataset", errors);
}

std::unique_ptr<const Plugin> make_initializers() {
  return std::make_unique<Initializers>();
}

}  // namespace trainer::pipeline
