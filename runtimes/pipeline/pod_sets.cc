#include "runtimes/pipeline/pod_sets.hh"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"

namespace trainer::pipeline {

namespace {

constexpr std::size_t kLabelLimit = 63;  // RFC 1035
constexpr std::string_view kResourcesSource = "spec.trainer.resourcesPerNode";

std::int32_t to_count(std::int64_t value) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value, 1, std::numeric_limits<std::int32_t>::max()));
}

void overlay_amounts(Draft& draft, kube::Json& resources, const kube::Json& desired,
                     std::string_view kind, const std::string& path) {
  for (const auto& [name, amount] : desired.get_object(kind)) {
    resources[kind].set(name, amount);
    if (draft.journal.is_on())
      draft.journal.note(fmt::format("{}.resources.{}[{}]", path, kind, name), kResourcesSource);
  }
}

// Claims merge by name. Upstream drops them, which takes a device away without a notice.
void overlay_claims(kube::Json& resources, const kube::Json& desired) {
  for (const kube::Json& claim : desired.get_array("claims")) {
    kube::Json& claims = resources["claims"];
    if (claims.is_null()) claims = kube::Json::array();
    auto& items = claims.as_array();
    const auto same = std::find_if(items.begin(), items.end(), [&claim](const kube::Json& item) {
      return item.get_string("name") == claim.get_string("name");
    });
    if (same == items.end())
      items.push_back(claim);
    else
      *same = claim;
  }
}

std::size_t count_resources(const kube::Json& container) {
  const kube::Json& resources = container.get("resources");
  return resources.get_object("limits").size() + resources.get_object("requests").size();
}

// This is a JobSet of an earlier version, or of upstream, whose launcher has none of the job's
// settings. No update changes a container of a JobSet, so it keeps what it has.
bool is_stored_without_trainer(const Draft& draft, std::size_t launcher) {
  const kube::Json* stored = draft.stored_container(launcher);
  const kube::Json* patched = draft.container(launcher, kNode);
  if (stored == nullptr || patched == nullptr) return false;
  for (const char* member : {"image", "command", "args", "resources"})
    if (stored->get(member) != patched->get(member)) return false;
  const auto& env = trainer_of(draft.job).env;
  return env.empty() || std::ranges::any_of(env, [stored](const kube::Json& variable) {
           return kube::find_env(*stored, variable.get_string("name")) == nullptr;
         });
}

std::optional<std::size_t> find_unlabelled_launcher(const Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  if (policy == nullptr || !policy->mpi) return std::nullopt;
  const auto launcher = draft.find_job(kLauncher);
  if (!launcher || !draft.pod_sets[*launcher].ancestor.empty()) return std::nullopt;
  const bool is_label_elsewhere = std::ranges::any_of(draft.pod_sets, [](const PodSet& set) {
    return set.ancestor == kTrainerStep && set.name != kNode;
  });
  if (is_label_elsewhere || is_stored_without_trainer(draft, *launcher)) return std::nullopt;
  return launcher;
}

// Returns whether resourcesPerNode is for the job: a launcher that is no node needs the resources
// of its runtime, unless no other job takes the job's.
bool takes_resources(const Draft& draft, std::size_t index) {
  const PodSet& set = draft.pod_sets[index];
  if (set.ancestor == kTrainerStep) return true;
  if (draft.is_launcher_a_node()) return set.name == kNode || draft.is_trainer(index);
  return draft.is_trainer(index) && !draft.find_ancestor(kTrainerStep);
}

bool is_without_index(const Draft& draft, std::size_t index) {
  return draft.spec.replicatedJobs[index].template_.get("spec").get_string("completionMode") ==
         "NonIndexed";
}

}  // namespace

bool check_pods(Draft& draft) {
  const auto refuse = [&draft](const std::string& job, std::size_t count, std::string_view what,
                               std::size_t most) {
    draft.errors.push_back(
        kube::invalid("spec.runtimeRef", draft.job.spec.runtimeRef.name,
                      "a pod of job \"{}\" of {} \"{}\" would have {} {}; it may "
                      "have {}",
                      job, draft.runtime.kind, draft.runtime.metadata.name, count, what, most));
  };
  for (std::size_t i = 0; i < draft.spec.replicatedJobs.size(); ++i) {
    const std::string& job = draft.spec.replicatedJobs[i].name;
    const kube::Json& pod = std::as_const(draft).pod_template(i).get("spec");
    std::size_t containers = 0;
    std::size_t resources = pod.get_object("overhead").size();
    for (const char* list : {"containers", "initContainers"}) {
      containers += pod.get_array(list).size();
      for (const kube::Json& container : pod.get_array(list))
        resources += count_resources(container);
    }
    if (containers > kMaxContainers) refuse(job, containers, "containers", kMaxContainers);
    if (resources > kMaxResources) refuse(job, resources, "resources", kMaxResources);
    if (!draft.errors.empty()) return false;
  }
  return true;
}

void normalize(Draft& draft) {
  for (ReplicatedJob& job : draft.spec.replicatedJobs) kube::write_as_go(job.template_);
  for (VolumeClaimPolicy& policy : draft.spec.volumeClaimPolicies)
    for (kube::Json& claim : policy.templates) kube::write_as_go(claim);
}

void count_pods(Draft& draft) {
  const MlPolicy* policy = draft.ml_policy();
  for (const ReplicatedJob& job : draft.spec.replicatedJobs) {
    PodSet set;
    set.name = job.name;
    set.ancestor = ancestor_of(job);
    set.replicas = job.replica_count();
    const bool is_policys = set.ancestor == kTrainerStep && policy != nullptr;
    set.count = to_count(is_policys ? policy->numNodes.value_or(1)
                                    : job.template_.get("spec").get_int("parallelism", 1));
    draft.pod_sets.push_back(std::move(set));
    if (is_policys && policy->numNodes)
      draft.set_count(draft.pod_sets.size() - 1, draft.pod_sets.back().count,
                      "runtime mlPolicy.numNodes");
  }
  draft.unlabelled_launcher = find_unlabelled_launcher(draft);
}

bool check_copies(Draft& draft) {
  constexpr std::size_t kFew = 16;  // even the largest objects are below this
  if (draft.pod_sets.size() <= kFew) return true;
  const std::size_t settings = kube::print_json(write(draft.job.spec)).size();
  std::size_t bytes = draft.pod_sets.size() * draft.subdomain().size();
  for (const PodSet& set : draft.pod_sets) bytes += set.ancestor.empty() ? 0 : settings;
  if (bytes <= kMaxCopiedBytes) return true;
  draft.errors.push_back(
      kube::invalid("spec.runtimeRef", draft.job.spec.runtimeRef.name,
                    "the {} jobs of {} \"{}\" would get {} bytes from the TrainJob, and {} is the "
                    "limit: label fewer jobs with {}, or shorten spec.trainer, spec.initializer or "
                    "network.subdomain",
                    draft.pod_sets.size(), draft.runtime.kind, draft.runtime.metadata.name, bytes,
                    kMaxCopiedBytes, kAncestorLabel));
  return false;
}

void merge_resources(Draft& draft) {
  const auto& own = trainer_of(draft.job).resourcesPerNode;
  if (!own || draft.ml_policy() == nullptr) return;
  const kube::Json& desired = *own;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    if (!takes_resources(draft, i)) continue;
    kube::Json* container = kube::find_container(draft.pod_template(i), kNode);
    if (container == nullptr) continue;
    kube::Json& resources = (*container)["resources"];
    const std::string path =
        draft.journal.is_on() ? draft.pod_path(i) + ".spec.containers[node]" : "";
    overlay_amounts(draft, resources, desired, "limits", path);
    overlay_amounts(draft, resources, desired, "requests", path);
    overlay_claims(resources, desired);
    if (resources.empty()) container->erase("resources");
  }
}

void apply_num_nodes(Draft& draft, std::string_view source) {
  const auto& nodes = trainer_of(draft.job).numNodes;
  const auto index = draft.find_ancestor(kTrainerStep);
  if (nodes && index) draft.set_count(*index, *nodes, source);
}

std::int32_t expected_pods(const Draft& draft, std::size_t index) {
  const auto& nodes = trainer_of(draft.job).numNodes;
  const PodSet& set = draft.pod_sets[index];
  const bool is_counted = set.ancestor == kTrainerStep || set.name == kNode;
  return is_counted && nodes ? *nodes : set.count;
}

void finalize_pod_sets(Draft& draft) {
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    PodSet& set = draft.pod_sets[i];
    set.replicas = draft.spec.replicatedJobs[i].replica_count();
    kube::Json& spec = draft.spec.replicatedJobs[i].template_["spec"];
    spec.set("parallelism", set.count);
    spec.set("completions", set.count);
    // Amounts of the job and of plugins came after normalize(); their zeros are intended.
    kube::canonicalise_quantities(draft.pod_template(i));
    // The API server turns a limit without a request into a request before a scheduler sees the
    // pod.
    set.requests = kube::pod_requests(draft.pod_template(i));
    set.pod_prefix = fmt::format("{}-{}-", draft.name(), set.name);
    set.subdomain = draft.subdomain();
  }
}

kube::FieldError too_many_pods(const Draft& draft, const PodSet& set, std::string detail) {
  const auto& nodes = trainer_of(draft.job).numNodes;
  const MlPolicy* policy = draft.ml_policy();
  const bool is_counted =
      set.ancestor == kTrainerStep || (policy != nullptr && policy->mpi && set.name == kNode);
  const bool is_jobs = is_counted && nodes;
  return kube::invalid(is_jobs ? "spec.trainer.numNodes" : "spec.runtimeRef.name",
                       is_jobs ? kube::Json(*nodes) : kube::Json(draft.job.spec.runtimeRef.name),
                       std::move(detail));
}

kube::FieldErrors check_sizes(const Draft& draft) {
  kube::FieldErrors errors;
  std::int64_t total = 0;
  const PodSet* largest = nullptr;
  for (const PodSet& set : draft.pod_sets) {
    if (set.most() > kMaxPods)
      errors.push_back(
          too_many_pods(draft, set,
                        fmt::format("job \"{}\" would have {} pods; an indexed Job has {} at most",
                                    set.name, set.most(), kMaxPods)));
    if (largest == nullptr || set.most_pods() > largest->most_pods()) largest = &set;
    total = std::min(total + set.most_pods(), std::numeric_limits<std::int64_t>::max() / 2);
  }
  if (errors.empty() && total > kMaxPods)
    errors.push_back(
        too_many_pods(draft, *largest,
                      fmt::format("the jobs of {} \"{}\" would have {} pods, most of them job "
                                  "\"{}\" ({} replicas of {}); a TrainJob has {} at most: ask for "
                                  "fewer nodes, or set fewer replicas in the runtime",
                                  draft.runtime.kind, draft.runtime.metadata.name, total,
                                  largest->name, largest->replicas, largest->most(), kMaxPods)));
  return errors;
}

kube::FieldErrors check_names(const Draft& draft) {
  const PodSet* longest = nullptr;
  std::string longest_pod;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i) {
    const PodSet& set = draft.pod_sets[i];
    std::string pod = fmt::format("{}-{}-{}-{}", draft.name(), set.name,
                                  std::max(set.replicas - 1, 0), std::max(set.most() - 1, 0));
    // The Job controller appends these if pods have an index, which is JobSet's default.
    if (!is_without_index(draft, i)) pod += "-abcde";
    if (longest != nullptr && pod.size() <= longest_pod.size()) continue;
    longest = &set;
    longest_pod = std::move(pod);
  }
  if (longest == nullptr || longest_pod.size() <= kLabelLimit) return {};
  const std::size_t excess = longest_pod.size() - kLabelLimit;
  const std::string way_out =
      excess < draft.name().size()
          ? fmt::format("shorten the name to {} characters or less", draft.name().size() - excess)
          : "shorten the names of the runtime's replicated jobs";
  return {kube::invalid(
      "metadata.name", draft.name(),
      "the pod \"{}\" of job \"{}\" would have a name of {} characters, and {} is the "
      "limit: {}",
      longest_pod, longest->name, longest_pod.size(), kLabelLimit, way_out)};
}

}  // namespace trainer::pipeline
