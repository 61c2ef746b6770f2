#include "runtimes/jobset/construct.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/disruption.hh"
#include "runtimes/jobset/execution_attempts.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// Only these members of a template's metadata are of use.
Json maps_of(const Json& object) {
  Json maps = Json::object();
  for (const std::string_view name : {"labels", "annotations"}) {
    const Json& map = object.get("metadata").get(name);
    if (map.is_object()) maps.set(name, map);
  }
  return maps;
}

std::string_view group_of(const ReplicatedJob& replicated_job) {
  return replicated_job.groupName ? std::string_view(*replicated_job.groupName) : "default";
}

using Keys = std::vector<std::pair<std::string_view, std::string>>;

// Both are in the order of their names, so each member is moved once.
Json with_keys(Json::Object map, const Keys& keys) {
  Json::Object::Members members;
  members.reserve(map.size() + keys.size());
  auto at = map.begin();
  for (const auto& [key, value] : keys) {
    for (; at != map.end() && at->first < key; ++at) members.push_back(std::move(*at));
    if (at != map.end() && at->first == key) ++at;
    members.emplace_back(key, value);
  }
  std::move(at, map.end(), std::back_inserter(members));
  return Json::Object::of_sorted(std::move(members));
}

// Sets the keys on the Job and on its pods, as labels and as annotations.
void put_keys(Json& job, Keys keys) {
  std::ranges::sort(keys);
  Json& pod_template = object_at(object_at(job, "spec"), "template");
  for (Json* object : {&job, &pod_template}) {
    Json& metadata = object_at(*object, "metadata");
    for (const std::string_view where : {"labels", "annotations"}) {
      Json& map = object_at(metadata, where);
      map = with_keys(std::move(map.as_object()), keys);
    }
  }
}

Keys common_keys(const JobSet& jobset, const ReplicatedJob& replicated_job, const Layout& layout,
                 const Layout::Place& place) {
  Keys keys = {
      {kJobSetNameKey, jobset.metadata.name},
      {kJobSetUidKey, jobset.metadata.uid},
      {kReplicatedJobNameKey, replicated_job.name},
      {kReplicatedJobReplicasKey, std::to_string(replicated_job.replica_count())},
      {kGlobalReplicasKey, std::to_string(layout.global_replicas)},
      {kGroupNameKey, std::string(group_of(replicated_job))},
      {kGroupReplicasKey, std::to_string(place.group_replicas)},
      {kRestartAttemptKey, std::to_string(jobset.status.restarts)},
  };
  if (jobset.spec.coordinator) keys.emplace_back(kCoordinatorKey, coordinator_endpoint(jobset));
  return keys;
}

// Sets an annotation of a Job and of its pods.
void annotate(Json& job, std::string_view key, std::string_view value) {
  Json& pod_template = object_at(object_at(job, "spec"), "template");
  for (Json* object : {&job, &pod_template})
    object_at(object_at(*object, "metadata"), "annotations")[key] = value;
}

// Sets the annotations for exclusive placement: first those of the JobSet, then those of the
// replicated job's template, which win. The node-selector of each is used only together with its
// exclusive-topology.
void put_exclusive_annotations(Json& job, const JobSet& jobset, const Json& job_template) {
  const kube::StringMap& above = jobset.metadata.annotations;
  const kube::StringMap below =
      kube::read_string_map(job_template.find_path({"metadata", "annotations"}));
  for (const kube::StringMap* level : {&above, &below}) {
    if (!level->contains(kExclusiveTopologyKey)) continue;
    annotate(job, kExclusiveTopologyKey, level->find(kExclusiveTopologyKey)->second);
    const auto selector = level->find(kNodeSelectorKey);
    if (selector != level->end()) annotate(job, kNodeSelectorKey, selector->second);
  }
}

bool uses_labelled_nodes(const Json& job) {
  const Json& annotations = *job.find_path({"metadata", "annotations"});
  return annotations.find(kExclusiveTopologyKey) && annotations.find(kNodeSelectorKey);
}

// Applies `visit` to every container and init container.
template <class Visit>
void for_each_container(Json& pod_spec, const Visit& visit) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    Json* containers = pod_spec.find(list);
    if (!containers || !containers->is_array()) continue;
    for (Json& container : containers->as_array()) {
      if (container.is_object()) visit(container);
    }
  }
}

// Adds the volumes only to pods that mount them: the volume mounts themselves are written by the
// user.
void add_claim_volumes(Json& pod_spec, const JobSet& jobset) {
  if (jobset.spec.volumeClaimPolicies.empty()) return;
  // The names are copied, since the list of volumes may be a new member of the pod spec.
  std::set<std::string, std::less<>> mounted;
  for (const std::string_view name : mounted_volumes(pod_spec)) mounted.emplace(name);
  if (mounted.empty()) return;
  for (const VolumeClaimPolicy& policy : jobset.spec.volumeClaimPolicies) {
    for (const Json& claim : policy.templates) {
      const std::string_view name = claim.get("metadata").get_string("name");
      if (name.empty() || !mounted.contains(name)) continue;
      Json source = Json::object({{"claimName", claim_name(name, jobset.metadata.name)}});
      array_at(pod_spec, "volumes")
          .push_back(Json::object({{"name", name}, {"persistentVolumeClaim", std::move(source)}}));
    }
  }
}

// This is only a preference: the node may be the only one, or may work again.
void prefer_other_nodes(Json& pod_spec, const JobSet& jobset) {
  const auto* condition = kube::find_condition(jobset.status.conditions, kAvoidedNode);
  if (!condition || !condition->is_true()) return;
  const std::string node = condition->message.substr(0, condition->message.find(':'));
  // The term uses the node's name, since its label kubernetes.io/hostname may differ.
  Json field = Json::object(
      {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
  Json preference = Json::object({{"matchFields", Json::array({std::move(field)})}});
  constexpr int kLargestWeight = 100;
  array_at(object_at(object_at(pod_spec, "affinity"), "nodeAffinity"),
           "preferredDuringSchedulingIgnoredDuringExecution")
      .push_back(Json::object({{"weight", kLargestWeight}, {"preference", std::move(preference)}}));
}

}  // namespace

void keep_last_lines(Json& job, const JobSet&) {
  for_each_container(job["spec"]["template"]["spec"], [](Json& container) {
    Json& policy = container["terminationMessagePolicy"];
    if (policy.is_null()) policy = "FallbackToLogsOnError";
  });
}

Layout Layout::of(const JobSet& jobset) {
  Layout layout;
  std::map<std::string_view, std::int64_t> groups;
  for (const ReplicatedJob& replicated_job : jobset.spec.replicatedJobs) {
    std::int64_t& group = groups[group_of(replicated_job)];
    layout.places.push_back({layout.global_replicas, group, 0});
    layout.global_replicas += replicated_job.replica_count();
    group += replicated_job.replica_count();
  }
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    layout.places[i].group_replicas = groups[group_of(jobset.spec.replicatedJobs[i])];
  }
  return layout;
}

JobFactory::JobFactory(const JobSet& jobset, const Layout& layout, std::size_t replicated_job,
                       JobDecorators decorators)
    : jobset_(jobset),
      replicated_job_(jobset.spec.replicatedJobs[replicated_job]),
      place_(layout.places[replicated_job]) {
  const Json& job_template = replicated_job_.template_;
  const Json& spec = job_template.get("spec");
  prototype_ = Json::object({{"apiVersion", "batch/v1"},
                             {"kind", "Job"},
                             {"metadata", maps_of(job_template)},
                             {"spec", spec.is_object() ? spec : Json::object()}});
  Json& job_metadata = prototype_["metadata"];
  job_metadata["namespace"] = jobset.metadata.ns;
  job_metadata["ownerReferences"] = Json::array({owner_reference(jobset)});
  put_keys(prototype_, common_keys(jobset, replicated_job_, layout, place_));
  put_exclusive_annotations(prototype_, jobset, job_template);
  if (counts_attempts(replicated_job_))
    annotate(prototype_, kExecutionAttemptKey, std::to_string(current_attempt(jobset.status)));
  is_on_labelled_nodes_ = uses_labelled_nodes(prototype_);

  Json& job_spec = prototype_["spec"];
  job_spec["suspend"] = jobset.spec.suspend.value_or(false);
  Json& pod_spec = object_at(object_at(job_spec, "template"), "spec");
  if (has_dns_hostnames(jobset)) pod_spec["subdomain"] = subdomain(jobset);
  add_claim_volumes(pod_spec, jobset);
  prefer_other_nodes(pod_spec, jobset);
  for (const JobDecorator decorate : decorators) decorate(prototype_, jobset);
  if (max_disruption_restarts(jobset) > 0) report_disruptions(job_spec);
}

Json JobFactory::make(std::int32_t index, std::optional<std::int32_t> job_restart_attempt) const {
  Json job = prototype_;
  const std::string name = job_name(jobset_.metadata.name, replicated_job_.name, index);
  job["metadata"]["name"] = name;
  Keys keys = {{kJobIndexKey, std::to_string(index)},
               {kJobGlobalIndexKey, std::to_string(place_.global_offset + index)},
               {kJobGroupIndexKey, std::to_string(place_.group_offset + index)},
               {kJobKeyKey, job_key(jobset_.metadata.ns, name)}};
  if (job_restart_attempt) {
    keys.emplace_back(kJobRestartAttemptKey, std::to_string(*job_restart_attempt));
  }
  put_keys(job, std::move(keys));
  if (is_on_labelled_nodes_) {
    Json& pod_spec = job["spec"]["template"]["spec"];
    object_at(pod_spec, "nodeSelector")[kNamespacedJobKey] =
        fmt::format("{}_{}", jobset_.metadata.ns, name);
    array_at(pod_spec, "tolerations")
        .push_back(Json::object(
            {{"key", kNoScheduleKey}, {"operator", "Exists"}, {"effect", "NoSchedule"}}));
  }
  return job;
}

std::vector<Json> all_jobs(const JobSet& jobset, const Gates& gates, JobDecorators decorators) {
  std::vector<Json> jobs;
  const Layout layout = Layout::of(jobset);
  for (std::size_t i = 0; i < jobset.spec.replicatedJobs.size(); ++i) {
    const JobFactory factory(jobset, layout, i, decorators);
    const std::int32_t replicas = jobset.spec.replicatedJobs[i].replica_count();
    for (std::int32_t index = 0; index < replicas; ++index) {
      jobs.push_back(
          factory.make(index, gates.restart_job ? std::optional<std::int32_t>(0) : std::nullopt));
    }
  }
  return jobs;
}

std::optional<kube::ObjectKey> headless_service_key(const JobSet& jobset) {
  if (!has_dns_hostnames(jobset)) return std::nullopt;
  return kube::ObjectKey{jobset.metadata.ns, subdomain(jobset)};
}

std::optional<Json> headless_service(const JobSet& jobset) {
  if (!has_dns_hostnames(jobset)) return std::nullopt;
  return Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", Json::object({{"name", subdomain(jobset)},
                                  {"namespace", jobset.metadata.ns},
                                  {"ownerReferences", Json::array({owner_reference(jobset)})}})},
       {"spec", Json::object({{"clusterIP", "None"},
                              {"selector",
                               Json::object({{std::string(kJobSetNameKey), jobset.metadata.name}})},
                              {"publishNotReadyAddresses",
                               jobset.spec.network->publishNotReadyAddresses.value_or(true)}})}});
}

Json make_claim(const JobSet& jobset, const VolumeClaimPolicy& policy, const Json& claim_template) {
  Json result_metadata = maps_of(claim_template);
  const std::string_view name = claim_template.get("metadata").get_string("name");
  result_metadata.set("namespace", jobset.metadata.ns)
      .set("name", claim_name(name, jobset.metadata.name));
  object_at(result_metadata, "labels")[kJobSetNameKey] = jobset.metadata.name;
  // A claim that is to be kept has no owner, so the garbage collector does not delete it.
  const bool is_kept =
      policy.retentionPolicy && policy.retentionPolicy->whenDeleted.value_or("Delete") == "Retain";
  if (!is_kept) result_metadata.set("ownerReferences", Json::array({owner_reference(jobset)}));
  const Json* spec = claim_template.find("spec");
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "PersistentVolumeClaim"},
                       {"metadata", std::move(result_metadata)},
                       {"spec", spec ? *spec : Json::object()}});
}

}  // namespace trainer::jobset
