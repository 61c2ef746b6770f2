#include "runtimes/batch/job.hh"

#include <algorithm>
#include <limits>
#include <utility>

namespace trainer::batch {
namespace {

using kube::Json;

constexpr std::string_view kManager = "kubernetes.io/job-controller";

std::optional<std::int64_t> long_of(const Json& object, std::string_view name) {
  const Json& value = object.get(name);
  return value.is_int() ? std::optional(value.as_int()) : std::nullopt;
}

std::optional<std::int32_t> int_of(const Json& object, std::string_view name) {
  const auto value = long_of(object, name);
  if (!value) return std::nullopt;
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(*value, 0, kMax));
}

}  // namespace

BatchJob read_job(std::shared_ptr<const Json> object) {
  BatchJob job;
  job.object = std::move(object);
  job.metadata = kube::ObjectMeta::of(*job.object);
  const Json& spec = job.spec();
  job.is_indexed = spec.get_string("completionMode") == "Indexed";
  job.is_suspended = spec.get_bool("suspend");
  job.replaces_only_failed = spec.get_string("podReplacementPolicy") == "Failed" ||
                             spec.get("podFailurePolicy").is_object();
  const auto parallelism = int_of(spec, "parallelism");
  job.parallelism = parallelism.value_or(1);
  job.completions = int_of(spec, "completions");
  if (!job.completions && (!parallelism || job.is_indexed)) job.completions = job.parallelism;
  job.backoff_limit_per_index = int_of(spec, "backoffLimitPerIndex");
  job.max_failed_indexes = int_of(spec, "maxFailedIndexes");
  job.backoff_limit =
      int_of(spec, "backoffLimit")
          .value_or(job.backoff_limit_per_index ? std::numeric_limits<std::int32_t>::max()
                                                : job.backoff_limit);
  job.active_deadline = long_of(spec, "activeDeadlineSeconds");
  job.ttl = long_of(spec, "ttlSecondsAfterFinished");
  return job;
}

bool BatchJob::is_foreign() const {
  return spec().get_string("managedBy", kManager) != kManager;
}

const Json* BatchJob::find_true(std::string_view type) const {
  const Json& condition = kube::condition_of(*object, type);
  return condition.get_string("status") == "True" ? &condition : nullptr;
}

}  // namespace trainer::batch
