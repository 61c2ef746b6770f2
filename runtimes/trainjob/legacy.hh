// TrainJobs and runtimes of v2.0 and v2.1 are converted to the form that v2.3 stores. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/trainjob.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"

namespace trainer {

struct Conversion {
  std::vector<std::string>
      warnings;  // one for each field that is converted or dropped; it names today's field
  // Fields that have no equivalent, each with what to write instead; the object is then half
  // converted.
  kube::FieldErrors errors;
};

bool has_legacy_fields(const kube::Json& trainjob);
// Returns whether a request changes such a field, or adds or removes one; `before` is null if the
// object is created. A stored field needs no conversion: the schema lets it stay, and it is
// converted when the job is read.
bool are_legacy_fields_changed(const kube::Json& before, const kube::Json& after);
// Converts a stored TrainJob of any version to today's API. If it cannot be converted, it is read
// unchanged.
tl::expected<TrainJob, kube::FieldErrors> read_stored_trainjob(const kube::Json& trainjob);
// Guarantees: idempotent; without legacy fields the object stays as it is, byte by byte.
Conversion convert_legacy_trainjob(kube::Json& trainjob);
Conversion convert_legacy_runtime(kube::Json& runtime);

}  // namespace trainer
