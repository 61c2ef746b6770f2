#include "controller/cli/job_change.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "controller/cli/documents.hh"
#include "controller/cli/job_list.hh"
#include "kube/model/text.hh"
#include "runtimes/lifecycle/finished_marker.hh"
#include "runtimes/views/created_version.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

using kube::Json;

// Names of JobSets and Jobs are made of it, with the replicated job and indices behind it. A longer
// name that exists is known to be short enough.
constexpr std::size_t kMaxName = 40;
constexpr std::string_view kSuffix = "-r";

// These labels and annotations say to whom or to which run an object belongs.
constexpr std::array<std::string_view, 9> kOfOldRun{
    kFinishedMarkerKey,
    kCreatedVersionKey,
    "kubectl.kubernetes.io/last-applied-configuration",
    "kueue.x-k8s.io/job-uid",
    "kueue.x-k8s.io/multikueue-origin",
    "kueue.x-k8s.io/prebuilt-workload-name",
    "argocd.argoproj.io/tracking-id",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace"};
constexpr std::string_view kManagedByKey = "app.kubernetes.io/managed-by";

const Json& policy_of(const KindRegistration& kind, const Json& object) {
  const Json& spec = object.get("spec");
  return kind.jobs->policy.empty() ? spec : spec.get(kind.jobs->policy);
}

Json kept_members(const Json& map) {
  Json kept = Json::object();
  if (!map.is_object()) return kept;
  for (const auto& [key, value] : map.as_object()) {
    const bool is_of_run = std::find(kOfOldRun.begin(), kOfOldRun.end(), key) != kOfOldRun.end();
    const bool is_of_helm =
        key == kManagedByKey && value.is_string() && value.as_string() == "Helm";
    if (!is_of_run && !is_of_helm) kept.set(key, value);
  }
  return kept;
}

std::string command(const ChangeFacts& job, std::string_view program, std::string_view verb) {
  const std::string kind = kube::to_lower(job.title.substr(0, job.title.find(' ')));
  return fmt::format("`{} {} {}/{} -n {}`", program, verb, kind, job.meta.name, job.meta.ns);
}

std::string part_sentence(const ChangeFacts& job, std::string_view program, std::string_view verb) {
  return fmt::format(
      "{}: it is a part of {}, which would change it back: `{} {} {} -n {}` is about both",
      job.title, job.owner, program, verb, job.owner, job.meta.ns);
}

}  // namespace

ChangeFacts read_change_facts(const Registry& registry, const KindRegistration& kind,
                              const Json& object) {
  ChangeFacts facts;
  facts.meta = kube::ObjectMeta::of(object);
  facts.title = kind.controller.resource().kind + " " + facts.meta.key().to_string();
  facts.state = kind.why->read_state(object, "").value_or(ObjectState{"Unknown"});
  const Json& policy = policy_of(kind, object);
  facts.is_suspended = policy.get_bool("suspend");
  facts.queue = queue_of(facts.meta.labels);
  const std::string_view manager = policy.get_string("managedBy");
  if (manager != kind.jobs->manager) facts.managed_by = manager;
  if (const auto* owner = owner_among_jobs(registry, facts.meta))
    facts.owner = fmt::format("{}/{}", kube::to_lower(owner->kind), owner->name);
  return facts;
}

std::optional<std::string> change_refusal(const ChangeFacts& job, std::string_view verb,
                                          std::string_view program) {
  if (!job.owner.empty()) return part_sentence(job, program, verb);
  if (job.meta.deletion_timestamp) return job.title + ": it is being deleted";
  if (!job.state.is_finished) return std::nullopt;
  if (verb == "cancel")
    return fmt::format(
        "{}: it has ended ({}), so there is nothing to cancel: `kubectl delete` "
        "removes it",
        job.title, job.state.phase);
  return fmt::format("{}: it has ended ({}): {} starts a copy", job.title, job.state.phase,
                     command(job, program, "rerun"));
}

std::optional<std::string> copy_refusal(const ChangeFacts& job, std::string_view program) {
  if (job.owner.empty()) return std::nullopt;
  return fmt::format("{}: it is a part of {}: `{} rerun {} -n {}` copies the whole job", job.title,
                     job.owner, program, job.owner, job.meta.ns);
}

Json suspend_patch(const KindRegistration& kind, const kube::ObjectMeta& meta, bool is_suspended) {
  Json spec = Json::object({{"suspend", is_suspended}});
  if (!kind.jobs->policy.empty()) {
    Json outer;
    outer.set(kind.jobs->policy, std::move(spec));
    spec = std::move(outer);
  }
  return Json::object({{"metadata", Json::object({{"resourceVersion", meta.resource_version}})},
                       {"spec", std::move(spec)}});
}

std::vector<std::string> suspend_notes(const ChangeFacts& job, bool is_suspended) {
  std::vector<std::string> notes;
  if (!job.managed_by.empty())
    notes.push_back(fmt::format("{}: managedBy leaves it to {}, which decides what follows",
                                job.title, job.managed_by));
  if (job.queue.empty()) return notes;
  if (is_suspended)
    notes.push_back(fmt::format(
        "{}: it has the label of queue {}, and no Workload: if Kueue takes it up later, Kueue "
        "starts it",
        job.title, job.queue));
  else
    notes.push_back(fmt::format(
        "{}: it has the label of queue {}, and no Workload: if Kueue has this namespace, it "
        "suspends the job again until there is room in the queue",
        job.title, job.queue));
  return notes;
}

std::string name_of_copy(std::string_view name, int tries) {
  int number = 2;
  const std::size_t limit = std::max(kMaxName, name.size());
  const std::size_t at = name.rfind(kSuffix);
  if (at != std::string_view::npos && at > 0) {
    const auto last = kube::parse_number<int>(name.substr(at + kSuffix.size()));
    if (last && *last > 1 && *last < 1'000'000) {
      number = *last + 1;
      name = name.substr(0, at);
    }
  }
  const std::string suffix = fmt::format("{}{}", kSuffix, number + tries);
  name = name.substr(0, limit - suffix.size());
  // A part of a name ends with a letter or a digit.
  while (name.ends_with('-') || name.ends_with('.')) name.remove_suffix(1);
  return std::string(name) + suffix;
}

Json copy_of_job(const KindRegistration& kind, const Json& object, const std::string& name) {
  const Json& before = object.get("metadata");
  Json meta = Json::object({{"name", name}});
  if (const auto ns = before.get_string("namespace"); !ns.empty()) meta.set("namespace", ns);
  for (const char* member : {"labels", "annotations"})
    if (Json kept = kept_members(before.get(member)); !kept.empty())
      meta.set(member, std::move(kept));
  Json spec = object.get("spec");
  if (kind.jobs->clean_copy) kind.jobs->clean_copy(spec);
  Json* const policy = kind.jobs->policy.empty() ? &spec : spec.find(kind.jobs->policy);
  if (policy != nullptr) policy->erase("suspend");
  const kube::Resource& resource = kind.controller.resource();
  return Json::object({{"apiVersion", resource.api_version()},
                       {"kind", resource.kind},
                       {"metadata", std::move(meta)},
                       {"spec", std::move(spec)}});
}

}  // namespace trainer
