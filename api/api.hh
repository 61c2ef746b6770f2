// Objects of the API are read and written, and their schemas made, from describe(). Pure.
#pragma once

#include <string>
#include <vector>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/error.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/patch.hh"

namespace trainer {

// These functions read and write whole objects. The result is all type errors, each with its path;
// members without errors are read nevertheless, where possible. Unknown members survive a read and
// a write, at every level.
tl::expected<TrainJob, kube::FieldErrors> read_trainjob(const kube::Json& object);
tl::expected<Runtime, kube::FieldErrors> read_runtime(const kube::Json& object);
tl::expected<JobSet, kube::FieldErrors> read_jobset(const kube::Json& object);
tl::expected<JobSetSpec, kube::FieldErrors> read_jobset_spec(const kube::Json& spec,
                                                             std::string_view path);

kube::Json write(const JobSetSpec& spec);
kube::Json write(const JobSetStatus& status);
kube::Json write(const TrainJobSpec& spec);
kube::Json write(const TrainJobStatus& status);

// Makes a status, or a condition of one, fit the bounds of its schema: long values are cut, numbers
// are raised or lowered. Otherwise the API server would refuse all of it, each time. Returns what
// was cut, a sentence each.
std::vector<std::string> fit(kube::Condition& condition);
std::vector<std::string> fit(JobSetStatus& status);
std::vector<std::string> fit(TrainJobStatus& status);

// These are the functions of api/schema/structural_schema.hh with the schema of the object's kind.
// An object of any other kind gets no defaults, and the check refuses it.
void apply_schema_defaults(kube::Json& object);
kube::FieldErrors check_schema(const kube::Json& object);

// Returns the merge keys of the lists below a JobSetSpec, from the Kubernetes OpenAPI.
const kube::MergeKeys& jobset_merge_keys();

}  // namespace trainer
