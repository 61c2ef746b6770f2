// JobSets are admitted by these rules (JobSet, pkg/webhooks/jobset_webhook.go). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/jobset.hh"
#include "kube/model/field_error.hh"
#include "runtimes/jobset/plan.hh"

namespace trainer::jobset {

// Sets the mutating webhook's defaults in the object of a request. The caller makes the JSON Patch.
void apply_webhook_defaults(kube::Json& jobset);
// Sets the late defaults: those that are also assumed for a JobSet that was stored while no webhook
// was served. spec.network is not among them: if it is absent, there is no Service, and pods have
// no host names.
void apply_late_defaults(kube::Json& jobset);
// Returns whether the late defaults would change anything. They nearly never do, and this is
// cheaper than a copy of the object.
bool lacks_late_defaults(const kube::Json& jobset);

// `find_claim(namespace, name)` returns an existing PersistentVolumeClaim, or nullopt.
using FindClaim =
    std::function<std::optional<kube::Json>(const std::string& ns, const std::string& name)>;
kube::FieldErrors validate_create(const JobSet& jobset, const Gates& gates,
                                  const FindClaim& find_claim);
// Returns the errors that the API server will find in the JobSet's labels and annotations.
kube::FieldErrors metadata_errors(const JobSet& jobset);
// Returns the errors that the API server will find in the JobSet's Jobs and pods, by the paths of
// the JobSet. The webhook does not check these: upstream's accepts such JobSets.
kube::FieldErrors child_errors(const JobSet& jobset);
kube::FieldErrors validate_update(const JobSet& before, const JobSet& after, const Gates& gates);

}  // namespace trainer::jobset
