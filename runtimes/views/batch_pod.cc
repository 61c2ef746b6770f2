#include "runtimes/views/batch_pod.hh"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kube/model/json_text.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/text.hh"

namespace trainer::batch {
namespace {

using kube::Json;

void read_owner(BatchPodView& view, const kube::ObjectMeta& meta) {
  const auto label = [&meta](std::string_view name) {
    const auto at = meta.labels.find(name);
    return at == meta.labels.end() ? std::string() : at->second;
  };
  view.is_of_job = true;
  if (const auto* owner = meta.controller()) {
    view.controller_uid = owner->uid;
    view.is_of_job = owner->kind == "Job" && owner->api_version == "batch/v1";
    if (view.is_of_job) view.job = owner->name;
  } else {
    view.job = label("batch.kubernetes.io/job-name");
  }
  view.jobset = label(jobset::kJobSetNameKey);
  view.replicated_job = label(jobset::kReplicatedJobNameKey);
  view.replicated_job_replicas =
      parse_unsigned(label(jobset::kReplicatedJobReplicasKey)).value_or(0);
}

void read_metadata(BatchPodView& view, const kube::ObjectMeta& meta) {
  view.uid = meta.uid;
  view.resource_version = meta.resource_version;
  view.is_deleting = meta.deletion_timestamp.has_value();
  view.created = meta.creation_timestamp.value_or(kube::Time());
  for (const std::string& finalizer : meta.finalizers) {
    if (finalizer == kTrackingFinalizer)
      view.is_tracked = true;
    else
      view.other_finalizers.push_back(finalizer);
  }
  const auto count = [&meta](std::string_view name) -> std::optional<std::int32_t> {
    const auto at = meta.annotations.find(name);
    return at == meta.annotations.end() ? std::nullopt : parse_unsigned(at->second);
  };
  view.index = count(kCompletionIndexKey);
  view.index_failures = count(kIndexFailureCountKey).value_or(0);
  view.ignored_index_failures = count(kIndexIgnoredFailureCountKey).value_or(0);
}

// Returns when the last container has ended; nullopt if one has not.
std::optional<kube::Time> end_of_containers(const Json& status) {
  std::optional<kube::Time> end;
  for (const Json& container : status.get_array("containerStatuses")) {
    const auto at =
        kube::Time::parse(container.get("state").get("terminated").get_string("finishedAt"));
    if (!at) return std::nullopt;
    end = end ? std::max(*end, *at) : *at;
  }
  return end;
}

// The rule is that of pkg/controller/job/backoff_utils.go, getFinishedTime.
kube::Time finish_time(const BatchPodView& view, const kube::ObjectMeta& meta, const Json& pod) {
  if (const auto end = end_of_containers(pod.get("status"))) return *end;
  const Json& ready = find_condition(view.conditions, "Ready");
  if (ready.get_string("status") == "False")
    if (const auto at = kube::Time::parse(ready.get_string("lastTransitionTime"))) return *at;
  if (meta.deletion_timestamp)
    return meta.deletion_timestamp->after(
        -std::max<std::int64_t>(pod.get("metadata").get_int("deletionGracePeriodSeconds"), 0));
  return view.created;
}

void read_status(BatchPodView& view, const Json& status) {
  view.phase = status.get_string("phase");
  view.conditions = status.get("conditions");
  view.is_ready = find_condition(view.conditions, "Ready").get_string("status") == "True";
  std::int64_t restarts = 0;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : status.get_array(list)) {
      restarts += container.get_int("restartCount");
      const std::int64_t code = container.get("state").get("terminated").get_int("exitCode");
      if (code != 0)
        view.failures.push_back(
            {std::string(container.get_string("name")), static_cast<std::int32_t>(code)});
    }
  }
  view.restarts = static_cast<std::int32_t>(std::min<std::int64_t>(restarts, 1'000'000'000));
}

void read_spec(BatchPodView& view, const Json& pod) {
  const Json& spec = pod.get("spec");
  view.node_name = spec.get_string("nodeName");
  view.uses_host_network = spec.get_bool("hostNetwork");
  view.is_gated = !spec.get_array("schedulingGates").empty();
  view.requests = kube::pod_requests(pod);
  for (const Json& container : spec.get_array("containers"))
    for (const Json& port : container.get_array("ports"))
      if (const std::int64_t number = port.get_int("containerPort"); number > 0)
        view.ports.push_back(static_cast<std::int32_t>(number));
}

const kube::JsonFilter& seen_of_pods() {
  using enum kube::JsonFilter::Members;
  static const std::vector<kube::JsonFilter> kContainer{{"name"}, {"state"}, {"restartCount"}};
  static const kube::JsonFilter kSeen{
      "",
      kInclude,
      {kube::metadata_with(
           {{"creationTimestamp"},
            {"deletionTimestamp"},
            {"deletionGracePeriodSeconds"},
            {"ownerReferences"},
            {"finalizers"},
            {"annotations",
             kInclude,
             {{kCompletionIndexKey}, {kIndexFailureCountKey}, {kIndexIgnoredFailureCountKey}}},
            {"labels",
             kInclude,
             {{"batch.kubernetes.io/job-name"},
              {jobset::kJobSetNameKey},
              {jobset::kReplicatedJobNameKey},
              {jobset::kReplicatedJobReplicasKey}}}}),
       {"spec",
        kInclude,
        {{"nodeName"},
         {"hostNetwork"},
         {"schedulingGates"},
         {"overhead"},
         {"resources"},
         {"containers", kInclude, {{"name"}, {"resources"}, {"ports"}}},
         {"initContainers", kInclude, {{"name"}, {"resources"}, {"restartPolicy"}}}}},
       {"status",
        kInclude,
        {{"phase"},
         {"conditions"},
         {"initContainerStatuses", kInclude, kContainer},
         {"containerStatuses", kInclude, kContainer}}}}};
  return kSeen;
}

}  // namespace

const Json& find_condition(const Json& conditions, std::string_view type) {
  if (conditions.is_array())
    for (const Json& condition : conditions.as_array())
      if (condition.get_string("type") == type) return condition;
  return Json::null();
}

std::shared_ptr<BatchPodView> view_pod(const Json& pod) {
  const kube::ObjectMeta meta = kube::ObjectMeta::of(pod);
  if (meta.name.empty()) return nullptr;
  auto view = std::make_shared<BatchPodView>();
  view->ns = meta.ns;
  view->name = meta.name;
  read_owner(*view, meta);
  read_metadata(*view, meta);
  read_status(*view, pod.get("status"));
  read_spec(*view, pod);
  if (!view->is_active()) view->finished = finish_time(*view, meta, pod);
  return view;
}

std::shared_ptr<BatchPodView> transform_pod(std::string_view json_text) {
  const auto pod = kube::parse_json(json_text, kube::kObjectLimits, seen_of_pods());
  return pod ? view_pod(*pod) : nullptr;
}

}  // namespace trainer::batch
