#include "api/describe/v1job.hh"

#include <algorithm>

#include "api/describe/reader.hh"
#include "api/describe/writer.hh"

namespace trainer::v1 {

namespace {

template <class Conditions>
auto find_condition(Conditions& conditions, std::string_view type) {
  const auto found = std::ranges::find(conditions, type, &JobCondition::type);
  return found == conditions.end() ? nullptr : &*found;
}

}  // namespace

const JobCondition* JobStatus::find(std::string_view type) const {
  return find_condition(conditions, type);
}

JobCondition* JobStatus::find(std::string_view type) {
  return find_condition(conditions, type);
}

bool JobStatus::is_true(std::string_view type) const {
  return std::ranges::any_of(
      conditions, [type](const JobCondition& one) { return one.type == type && one.is_true(); });
}

void JobStatus::keep_times(const JobStatus& before) {
  for (JobCondition& condition : conditions) {
    for (const JobCondition& stored : before.conditions) {
      if (stored.type != condition.type || stored.status != condition.status ||
          stored.reason != condition.reason || stored.message != condition.message)
        continue;
      condition.lastUpdateTime = stored.lastUpdateTime;
      condition.lastTransitionTime = stored.lastTransitionTime;
    }
  }
}

tl::expected<V1Job, kube::FieldErrors> read_job(const kube::Json& object,
                                                std::string_view replica_specs) {
  V1Job job;
  kube::FieldErrors errors;
  const wire::FieldPath root("");
  const wire::FieldPath spec(root, "spec");
  job.metadata = kube::ObjectMeta::of(object);
  if (const kube::Json* value = object.find("spec"); value && !value->is_null()) {
    wire::read(*value, spec, job.spec, errors);
    const kube::Json* const roles = value->find(replica_specs);
    job.spec.has_replica_specs = roles && !roles->is_null();
    if (job.spec.has_replica_specs)
      wire::read(*roles, wire::FieldPath(spec, replica_specs), job.spec.replicaSpecs, errors);
    if (job.spec.unknown.is_object()) job.spec.unknown.erase(replica_specs);
  }
  if (const kube::Json* status = object.find("status"); status && !status->is_null())
    wire::read(*status, wire::FieldPath(root, "status"), job.status, errors);
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return job;
}

kube::Json write(const JobStatus& status) {
  return wire::to_json(status);
}

}  // namespace trainer::v1
