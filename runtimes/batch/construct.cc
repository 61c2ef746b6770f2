// Pods of a Job are made here (pkg/controller/job/job_controller.go, manageJob, and PodControl).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/pod_template.hh"
#include "runtimes/batch/policies.hh"
#include "runtimes/views/labels.hh"

namespace trainer::batch {
namespace {

using kube::Json;

// A generated name has 63 characters at most, five of which make it unique.
constexpr std::size_t kMaxPrefix = 58;

std::string name_prefix(std::string_view job, const std::optional<std::int32_t>& index) {
  const std::string end = index ? fmt::format("-{}-", *index) : "-";
  return std::string(job.substr(0, kMaxPrefix - end.size())) + end;
}

Json tracked(const Json& metadata) {
  Json finalizers = metadata.get_array("finalizers");
  const auto& all = finalizers.as_array();
  if (std::find(all.begin(), all.end(), Json(kTrackingFinalizer)) == all.end())
    finalizers.push_back(kTrackingFinalizer);
  return finalizers;
}

// The API server adds these labels to the template of most Jobs
// (pkg/registry/batch/job/strategy.go).
void add_job_labels(Json& pod, const kube::ObjectMeta& job) {
  Json& labels = pod["metadata"]["labels"];
  const auto add = [&labels](std::string_view name, const std::string& value) {
    for (const std::string& key : {std::string(name), fmt::format("batch.kubernetes.io/{}", name)})
      if (!labels.find(key)) labels.set(key, value);
  };
  add("job-name", job.name);
  add("controller-uid", job.uid);
}

void set_index(const Context& context, std::int32_t index, Json& pod) {
  const std::string number = std::to_string(index);
  kube::add_labels(pod, {{std::string(kCompletionIndexKey), number}});
  kube::add_annotations(pod, {{std::string(kCompletionIndexKey), number}});
  Json& spec = pod["spec"];
  spec.set("hostname", fmt::format("{}-{}", context.job.metadata.name, index));
  const std::string path = fmt::format("metadata.labels['{}']", kCompletionIndexKey);
  for (const char* list : {"initContainers", "containers"}) {
    Json* const containers = spec.find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : containers->as_array()) {
      if (kube::find_env(container, "JOB_COMPLETION_INDEX")) continue;
      Json source = Json::object({{"fieldRef", Json::object({{"fieldPath", path}})}});
      container["env"].push_back(
          Json::object({{"name", "JOB_COMPLETION_INDEX"}, {"valueFrom", std::move(source)}}));
    }
  }
  if (context.job.backoff_limit_per_index) set_failure_counts(context, index, pod);
}

}  // namespace

Json make_pod(const Context& context, std::optional<std::int32_t> index) {
  const kube::ObjectMeta& job = context.job.metadata;
  const Json& from = context.job.pod_template();
  const std::string prefix = name_prefix(job.name, index);
  const kube::OwnerReference owner{"batch/v1", "Job", job.name, job.uid, true, true};
  Json metadata = Json::object({{"name", prefix + context.observed.new_suffix()},
                                {"generateName", prefix},
                                {"namespace", job.ns},
                                {"finalizers", tracked(from.get("metadata"))},
                                {"ownerReferences", Json::array({owner.to_json()})}});
  for (const char* member : {"labels", "annotations"})
    if (const Json* value = from.get("metadata").find(member)) metadata.set(member, *value);
  Json pod = Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  pod.set("metadata", std::move(metadata)).set("spec", from.get("spec"));
  add_job_labels(pod, job);
  if (index) set_index(context, *index, pod);
  return pod;
}

}  // namespace trainer::batch
