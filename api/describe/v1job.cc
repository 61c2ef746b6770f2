#include "api/describe/v1job.hh"

#include "api/describe/reader.hh"
#include "api/describe/writer.hh"

namespace trainer::v1 {

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
