#include "api/api.hh"
#include "api/describe/jobset.hh"
#include "api/describe/trainjob.hh"
#include "api/describe/writer.hh"

namespace trainer {

kube::Json write(const JobSetSpec& spec) {
  return wire::to_json(spec);
}

kube::Json write(const JobSetStatus& status) {
  return wire::to_json(status);
}

kube::Json write(const TrainJobSpec& spec) {
  return wire::to_json(spec);
}

kube::Json write(const TrainJobStatus& status) {
  kube::Json out = wire::to_json(status);
  // The column RESTARTS shows 0 on a job that has a phase; an empty status stays
  // empty.
  if (!status.phase.empty()) out.set("restarts", std::int64_t{status.restarts});
  return out;
}

}  // namespace trainer
