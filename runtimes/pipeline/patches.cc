#include "runtimes/pipeline/patches.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "runtimes/pipeline/leaves.hh"
#include "runtimes/pipeline/pod_sets.hh"
#include "runtimes/pipeline/shapes.hh"
#include "runtimes/pipeline/unions.hh"

namespace trainer::pipeline {

namespace {

std::string source_of(const RuntimePatch& patch) {
  return fmt::format("runtimePatches[{}]", patch.manager);
}

// Returns the part of a patch below "template", or nullptr: "metadata" or "spec".
const kube::Json* part(const RuntimePatch& patch, std::string_view member) {
  if (!patch.trainingRuntimeSpec) return nullptr;
  const kube::Json* found = patch.trainingRuntimeSpec->find_path({"template", member});
  return found != nullptr && found->is_object() && !found->empty() ? found : nullptr;
}

// An empty list is an absent one: clients that write every member of a type send both alike, and a
// patch cannot delete. If it were merged, it would empty an atomic list.
void drop_empty_lists(kube::Json& value) {
  if (value.is_array()) {
    for (kube::Json& item : value.as_array()) drop_empty_lists(item);
  } else if (value.is_object()) {
    value.as_object().keep_if([](kube::Json::Object::Member& member) {
      if (member.second.is_array() && member.second.empty()) return false;
      drop_empty_lists(member.second);
      return true;
    });
  }
}

// Returns what a patch says about the JobSet's spec; empty if it says nothing.
kube::Json spec_changes(const RuntimePatch& patch) {
  const kube::Json* spec = part(patch, "spec");
  kube::Json changes = spec == nullptr ? kube::Json() : *spec;
  drop_empty_lists(changes);
  return changes;
}

// Returns whether another controller or a scheduler acts on a pod by this label or annotation.
bool steers_pods(std::string_view key) {
  static constexpr std::array<std::string_view, 11> kDomains = {
      "kueue.x-k8s.io",      "jobset.sigs.k8s.io", "batch.kubernetes.io",    "trainer.kubeflow.org",
      "scheduling.x-k8s.io", "scheduling.k8s.io",  "scheduling.sigs.k8s.io", "volcano.sh",
      "yunikorn.apache.org", "kai.scheduler",      "koordinator.sh"};
  if (key == "job-name" || key == "controller-uid") return true;  // a label of batch/v1
  // Koordinator and older coscheduling plugins read "pod-group.scheduling.sigs.k8s.io" itself.
  const std::string_view prefix = key.substr(0, key.find('/'));
  return std::any_of(kDomains.begin(), kDomains.end(), [prefix](std::string_view domain) {
    return prefix.ends_with(domain) &&
           (prefix.size() == domain.size() || prefix[prefix.size() - domain.size() - 1] == '.');
  });
}

// spec.labels and spec.annotations of v2.0 and v2.1 were meant for the pods as well, and are the
// metadata of the legacy patch now. Returns them as a patch of the pods of each job; null without.
kube::Json pod_metadata(Draft& draft, const RuntimePatch& patch) {
  const kube::Json* metadata = part(patch, "metadata");
  if (patch.manager != kLegacyManager || metadata == nullptr) return {};
  kube::Json own;
  for (const char* member : {"labels", "annotations"})
    for (const auto& [key, value] : kube::read_string_map(metadata->find(member)))
      if (!steers_pods(key)) own[member].set(key, value);
  if (own.empty()) return {};
  const std::size_t bytes = kube::print_json(own).size() * draft.spec.replicatedJobs.size();
  if (bytes > kMaxCopiedBytes) {
    draft.errors.push_back(
        kube::invalid("spec.runtimePatches", patch.manager,
                      "its labels and annotations would have {} bytes in the pods of "
                      "all jobs, and {} is the limit: shorten them",
                      bytes, kMaxCopiedBytes));
    return {};
  }
  kube::Json jobs = kube::Json::array();
  const kube::Json pod = kube::Json::object({{"metadata", std::move(own)}});
  for (const ReplicatedJob& job : draft.spec.replicatedJobs)
    jobs.push_back(kube::Json::object(
        {{"name", job.name},
         {"template", kube::Json::object({{"spec", kube::Json::object({{"template", pod}})}})}}));
  return kube::Json::object({{"replicatedJobs", std::move(jobs)}});
}

void overlay(Draft& draft, const kube::Json* metadata, std::string_view source) {
  if (metadata == nullptr) return;
  for (const auto& [member, target] :
       {std::pair("labels", &draft.labels), {"annotations", &draft.annotations}})
    for (auto& [key, value] : kube::read_string_map(metadata->find(member))) {
      if (draft.journal.is_on())
        draft.journal.note(fmt::format("metadata.{}[{}]", member, key), source);
      (*target)[key] = value;
    }
}

kube::FieldError of_runtime(const Runtime& runtime, std::string_view detail) {
  return kube::invalid("spec.runtimeRef", runtime.metadata.name, "{} \"{}\" {}", runtime.kind,
                       runtime.metadata.name, detail);
}

// The paths are those of the runtime, so the message names the runtime.
void add_of_runtime(Draft& draft, kube::FieldErrors errors) {
  for (kube::FieldError& error : errors) {
    error.detail += fmt::format("{}in {} \"{}\"", error.detail.empty() ? "" : ", ",
                                draft.runtime.kind, draft.runtime.metadata.name);
    draft.errors.push_back(std::move(error));
  }
}

void restore_order(kube::Json& spec, const JobSetSpec& original) {
  kube::Json* jobs = spec.find("replicatedJobs");
  if (jobs == nullptr || !jobs->is_array()) return;
  std::map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < original.replicatedJobs.size(); ++i)
    place.emplace(original.replicatedJobs[i].name, i);
  const auto rank = [&place](const kube::Json& job) {
    const auto found = place.find(job.get_string("name"));
    return found == place.end() ? place.size() : found->second;
  };
  auto& items = jobs->as_array();
  // The rank, and the present index of the job.
  std::vector<std::pair<std::size_t, std::size_t>> order;
  order.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) order.emplace_back(rank(items[i]), i);
  if (std::is_sorted(order.begin(), order.end())) return;
  std::sort(order.begin(), order.end());
  std::vector<kube::Json> sorted;
  sorted.reserve(items.size());
  for (const auto& [_, at] : order) sorted.push_back(std::move(items[at]));
  items = std::move(sorted);
}

void explain(Draft& draft, const RuntimePatch& patch, const kube::Json& spec) {
  if (!draft.journal.is_on()) return;
  const std::string source = source_of(patch);
  visit_leaves(spec, "spec", jobset_merge_keys(), [&](const std::string& path, const kube::Json&) {
    draft.journal.note(path, source);
  });
}

}  // namespace

void merge_metadata(Draft& draft) {
  const auto& template_ = draft.runtime.spec.template_;
  if (template_ && template_->metadata)
    overlay(draft, &*template_->metadata, "runtime template.metadata");
  for (const RuntimePatch& patch : draft.job.spec.runtimePatches)
    overlay(draft, part(patch, "metadata"), source_of(patch));
}

bool merge_template(Draft& draft) {
  const auto& template_ = draft.runtime.spec.template_;
  if (!template_ || !template_->spec || template_->spec->replicatedJobs.empty()) {
    draft.errors.push_back(of_runtime(
        draft.runtime, "has no jobs to run: list them under spec.template.spec.replicatedJobs"));
    return false;
  }
  draft.spec = *template_->spec;
  std::optional<kube::Json> merged;
  const auto& patches = draft.job.spec.runtimePatches;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    // The patch's settings for some pods are merged after those for all pods.
    const std::array<kube::Json, 2> steps = {pod_metadata(draft, patches[i]),
                                             spec_changes(patches[i])};
    for (const kube::Json& changes : steps) {
      if (changes.empty()) continue;
      if (!merged) merged = write(*template_->spec);
      auto next = merge_runtime_patch(std::move(*merged), changes);
      if (!next) {
        draft.errors.push_back(kube::invalid(
            kube::join_index("spec.runtimePatches", i) + ".trainingRuntimeSpec.template.spec",
            nullptr, next.error().message));
        return false;
      }
      merged = std::move(*next);
      explain(draft, patches[i], changes);
    }
  }
  if (merged) {
    restore_order(*merged, *template_->spec);
    auto spec = read_jobset_spec(*merged, "spec.template.spec");
    if (!spec) {
      add_of_runtime(draft, std::move(spec.error()));
      return false;
    }
    draft.spec = std::move(*spec);
  }
  add_of_runtime(draft, check_shapes(draft.spec));
  return draft.errors.empty();
}

std::vector<std::string> find_patch_conflicts(const TrainJob& job) {
  if (job.spec.runtimePatches.size() < 2) return {};
  struct Setting {
    std::string manager;
    kube::Json value;
  };
  std::map<std::string, Setting> settings;
  std::vector<std::string> conflicts;
  for (const RuntimePatch& patch : job.spec.runtimePatches) {
    const auto visit = [&](const std::string& path, const kube::Json& value) {
      auto [found, is_new] = settings.try_emplace(path, Setting{patch.manager, value});
      if (is_new) return;
      if (found->second.manager != patch.manager && found->second.value != value)
        conflicts.push_back(
            fmt::format("spec.runtimePatches: managers \"{}\" and \"{}\" set {} differently; "
                        "\"{}\" comes later in the list and wins",
                        found->second.manager, patch.manager, path, patch.manager));
      found->second = {patch.manager, value};
    };
    if (const kube::Json* metadata = part(patch, "metadata"))
      visit_leaves(*metadata, "metadata", {}, visit);
    visit_leaves(spec_changes(patch), "spec", jobset_merge_keys(), visit);
  }
  return conflicts;
}

std::optional<std::string> path_of_patch(const TrainJob& job, std::string_view source) {
  const auto& patches = job.spec.runtimePatches;
  for (std::size_t i = patches.size(); i-- > 0;)
    if (source == source_of(patches[i])) return kube::join_index("spec.runtimePatches", i);
  return std::nullopt;
}

}  // namespace trainer::pipeline
