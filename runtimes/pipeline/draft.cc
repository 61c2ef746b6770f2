#include "runtimes/pipeline/draft.hh"

#include <fmt/format.h>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/converted_env.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

std::string container_path(const Draft& draft, std::size_t index, std::string_view list,
                           std::string_view name) {
  if (!draft.journal.is_on()) return {};
  return fmt::format("{}.spec.{}[{}]", draft.pod_path(index), list, name);
}

}  // namespace

void ContainerEdit::note(std::string_view list, std::string_view key) {
  if (journal_.is_on()) journal_.note(fmt::format("{}.{}[{}]", path_, list, key), source_);
}

// Most edits replace nothing, so the name of the container is read only here.
void ContainerEdit::keep(std::string_view list, const kube::Json& replaced, std::string_view key) {
  if (!replaced.is_null())
    replaced_.push_back(
        {job_, std::string(container_.get_string("name")), list, std::string(key), source_});
}

void ContainerEdit::env(kube::Json variable) {
  note("env", variable.get_string("name"));
  const kube::Json replaced = kube::upsert_env(container_, std::move(variable));
  keep("env", replaced, replaced.get_string("name"));
}

void ContainerEdit::env(std::string_view name, std::string_view value) {
  note("env", name);
  keep("env", kube::upsert_env(container_, name, value), name);
}

void ContainerEdit::env_field(std::string_view name, std::string_view path) {
  kube::Json source = kube::Json::object({{"fieldRef", kube::Json::object({{"fieldPath", path}})}});
  env(kube::Json::object({{"name", name}, {"valueFrom", std::move(source)}}));
}

void ContainerEdit::env_of_job(const std::vector<kube::Json>& variables) {
  kube::Json::Array converted;
  for (const kube::Json& variable : variables) {
    note("env", variable.get_string("name"));
    converted.push_back(converted_env(variable));
  }
  kube::upsert_env(container_, std::move(converted));
}

void ContainerEdit::env_completion_index(std::string_view name) {
  env_field(name, fmt::format("metadata.annotations['{}']", kCompletionIndexKey));
}

void ContainerEdit::env_from(kube::Json source) {
  if (const kube::Json* secret = source.find_path({"secretRef", "name"});
      secret != nullptr && secret->is_string())
    note("envFrom", secret->as_string());
  container_["envFrom"].push_back(std::move(source));
}

void ContainerEdit::port(std::int32_t number) {
  note("ports", std::to_string(number));
  const kube::Json replaced = kube::upsert_port(
      container_, kube::Json::object({{"containerPort", number}, {"protocol", "TCP"}}));
  keep("ports", replaced, std::to_string(replaced.get_int("containerPort")));
}

void ContainerEdit::mount(kube::Json volume_mount) {
  note("volumeMounts", volume_mount.get_string("mountPath"));
  const kube::Json replaced = kube::upsert_volume_mount(container_, std::move(volume_mount));
  keep("volumeMounts", replaced, replaced.get_string("mountPath"));
}

void ContainerEdit::set(std::string_view member, kube::Json value) {
  if (journal_.is_on()) journal_.note(kube::join_field(path_, member), source_);
  container_.set(member, std::move(value));
}

void ContainerEdit::erase(std::string_view member) {
  if (journal_.is_on()) journal_.note(kube::join_field(path_, member), source_);
  container_.erase(member);
}

const Trainer& trainer_of(const TrainJob& job) {
  static const Trainer kEmpty;
  return job.spec.trainer ? *job.spec.trainer : kEmpty;
}

bool has_framework(const MlPolicy* policy) {
  return policy != nullptr &&
         (policy->torch || policy->mpi || policy->jax || policy->xgboost || policy->flux);
}

void Draft::set_annotation(std::string_view key, std::string value, std::string_view source) {
  if (journal.is_on()) journal.note(fmt::format("metadata.annotations[{}]", key), source);
  annotations[std::string(key)] = std::move(value);
}

const MlPolicy* Draft::ml_policy() const {
  if (implied_ml_policy != nullptr) return implied_ml_policy;
  return runtime.spec.mlPolicy ? &*runtime.spec.mlPolicy : nullptr;
}

const PodGroupPolicy* Draft::pod_group_policy() const {
  return runtime.spec.podGroupPolicy ? &*runtime.spec.podGroupPolicy : nullptr;
}

bool Draft::is_launcher_a_node() const {
  const MlPolicy* policy = ml_policy();
  return policy != nullptr && policy->mpi && policy->mpi->runLauncherAsNode.value_or(false);
}

const kube::Json* Draft::stored_container(std::size_t index, std::string_view container) const {
  if (stored == nullptr) return nullptr;
  for (const kube::Json& replicated : stored->get("spec").get_array("replicatedJobs"))
    if (replicated.get_string("name") == pod_sets[index].name)
      return kube::find_container(replicated.get_path({"template", "spec", "template"}), container);
  return nullptr;
}

bool Draft::is_stored_without(std::size_t index, std::string_view variable) const {
  if (job.spec.trainer) return false;
  const kube::Json* container = stored_container(index);
  return container != nullptr && kube::find_env(*container, variable) == nullptr;
}

bool Draft::is_trainer(std::size_t index) const {
  return pod_sets[index].ancestor == kTrainerStep || unlabelled_launcher == index;
}

std::optional<std::size_t> Draft::find_job(std::string_view desired) const {
  for (std::size_t i = 0; i < pod_sets.size(); ++i)
    if (pod_sets[i].name == desired) return i;
  return std::nullopt;
}

std::optional<std::size_t> Draft::find_ancestor(std::string_view ancestor) const {
  for (std::size_t i = 0; i < pod_sets.size(); ++i)
    if (pod_sets[i].ancestor == ancestor) return i;
  return std::nullopt;
}

kube::Json& Draft::pod_template(std::size_t index) {
  return spec.replicatedJobs[index].template_["spec"]["template"];
}

const kube::Json& Draft::pod_template(std::size_t index) const {
  return spec.replicatedJobs[index].template_.get_path({"spec", "template"});
}

const kube::Json* Draft::container(std::size_t index, std::string_view desired) const {
  return kube::find_container(pod_template(index), desired);
}

const kube::Json& Draft::trainer_container() const {
  const auto index = find_ancestor(kTrainerStep);
  const kube::Json* found = index ? container(*index, kNode) : nullptr;
  return found == nullptr ? kube::Json::null() : *found;
}

std::optional<ContainerEdit> Draft::edit(std::size_t index, std::string_view desired,
                                         std::string_view source) {
  kube::Json* found = kube::find_container(pod_template(index), desired);
  if (found == nullptr) return std::nullopt;
  return edit(index, *found, source);
}

ContainerEdit Draft::edit(std::size_t index, kube::Json& container, std::string_view source) {
  const auto name = container.get_string("name");
  return {journal, container, container_path(*this, index, "containers", name),
          source,  index,     replaced};
}

std::optional<ContainerEdit> Draft::edit_any(std::size_t index, std::string_view desired,
                                             std::string_view source) {
  if (auto regular = edit(index, desired, source)) return regular;
  kube::Json* found = kube::find_any_container(pod_template(index), desired);
  if (found == nullptr) return std::nullopt;
  return ContainerEdit(journal, *found, container_path(*this, index, "initContainers", desired),
                       source, index, replaced);
}

void Draft::upsert_volume(std::size_t index, kube::Json volume, std::string_view source) {
  if (journal.is_on())
    journal.note(fmt::format("{}.spec.volumes[{}]", pod_path(index), volume.get_string("name")),
                 source);
  const kube::Json before = kube::upsert_volume(pod_template(index), std::move(volume));
  if (!before.is_null())
    replaced.push_back({index, "", "volumes", std::string(before.get_string("name")), source});
}

void Draft::set_entry(std::size_t index, std::string_view part, std::string_view map,
                      std::string_view key, std::string_view value, std::string_view source) {
  if (journal.is_on()) journal.note(entry_path(index, part, map, key), source);
  kube::Json& target = pod_template(index)[part][map];
  if (const kube::Json* before = target.find(key);
      before != nullptr && *before != kube::Json(value))
    replaced.push_back({index, "", map, std::string(key), source});
  target.set(key, value);
}

void Draft::set_count(std::size_t index, std::int32_t count, std::string_view source) {
  pod_sets[index].count = count;
  if (!journal.is_on()) return;
  journal.note(job_path(index) + ".template.spec.parallelism", source);
  journal.note(job_path(index) + ".template.spec.completions", source);
}

std::string_view Draft::subdomain() const {
  if (spec.network && spec.network->subdomain && !spec.network->subdomain->empty())
    return *spec.network->subdomain;
  return job.metadata.name;
}

std::string Draft::first_host(std::size_t index) const {
  return fmt::format("{}-{}-0-0.{}", name(), pod_sets[index].name, subdomain());
}

std::string Draft::job_path(std::size_t index) const {
  return fmt::format("spec.replicatedJobs[{}]", pod_sets[index].name);
}

std::string Draft::entry_path(std::size_t index, std::string_view part, std::string_view map,
                              std::string_view key) const {
  const std::string holder = fmt::format("{}.{}.{}", pod_path(index), part, map);
  return part == "spec" ? kube::join_field(holder, key) : kube::join_key(holder, key);
}

std::string Draft::pod_path(std::size_t index) const {
  return job_path(index) + ".template.spec.template";
}

}  // namespace trainer::pipeline
