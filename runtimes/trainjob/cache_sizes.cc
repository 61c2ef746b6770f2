#include "runtimes/trainjob/cache_sizes.hh"

#include <utility>

#include "kube/model/name_index.hh"
#include "runtimes/plugins/data_cache/data_cache.hh"
#include "runtimes/trainjob/difference.hh"

namespace trainer {
namespace {

using kube::Json;

const Json::Array& containers_of(const Json& replicated_job) {
  return replicated_job.get_path({"template", "spec", "template", "spec"}).get_array("containers");
}

bool are_sizes_changed(const Json& desired, const Json& stored) {
  const Json::Array& before = stored.get("spec").get_array("replicatedJobs");
  const kube::NameIndex jobs(before);
  for (const Json& job : desired.get("spec").get_array("replicatedJobs")) {
    const auto at = jobs.find(job.get_string("name"));
    if (!at) continue;
    if (job.get_path({"template", "spec", "parallelism"}) !=
        before[*at].get_path({"template", "spec", "parallelism"}))
      return true;
    const Json::Array& others = containers_of(before[*at]);
    const kube::NameIndex names(others);
    for (const Json& container : containers_of(job)) {
      const auto other = names.find(container.get_string("name"));
      if (other && !is_equivalent(container.get("resources"), others[*other].get("resources")))
        return true;
    }
  }
  return false;
}

}  // namespace

tl::expected<Built, kube::FieldErrors> build_beside(const TrainJob& job, const Runtime& runtime,
                                                    const PipelineOptions& options,
                                                    const Json* stored) {
  auto built = build(job, runtime, options);
  if (!built || stored == nullptr || pipeline::cached_dataset(job) == nullptr ||
      !are_sizes_changed(built->jobset, *stored))
    return built;
  // An earlier version made it, which did not read the sizes.
  PipelineOptions with_runtime_sizes = options;
  with_runtime_sizes.has_cache_runtime_sizes = true;
  auto other = build(job, runtime, with_runtime_sizes);
  if (other && !are_sizes_changed(other->jobset, *stored)) return other;
  // The label of a queue came after the JobSet.
  if (!built->ignored.empty()) return tl::unexpected(std::move(built->ignored));
  return built;
}

}  // namespace trainer
