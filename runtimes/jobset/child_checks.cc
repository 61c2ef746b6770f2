// This file finds the errors that the API server will find in the Jobs and pods of a JobSet.
// Upstream does not check these: such a JobSet is stored, and its Jobs are never created.
#include "kube/model/check_items.hh"
#include "kube/model/names.hh"
#include "kube/model/pod_checks.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/job_template.hh"

namespace trainer::jobset {
namespace {

using kube::FieldErrors;
using kube::Json;

// This is a rule of Kubernetes, pkg/apis/batch/validation. The webhook's default is OnFailure.
void check_restart_policy(const Json& job_spec, std::string_view path, FieldErrors& errors) {
  const Json& pod_spec = job_spec.get_path({"template", "spec"});
  const std::string_view policy = pod_spec.get_string("restartPolicy", "OnFailure");
  std::string at = kube::join_field(path, "template.spec.restartPolicy");
  if (policy == "Always")
    errors.push_back(kube::not_supported(std::move(at), policy, {"OnFailure", "Never"}));
  else if (policy == "OnFailure" && job_spec.get("podFailurePolicy").is_object())
    errors.push_back(kube::invalid(
        std::move(at), policy, "only \"Never\" is supported when podFailurePolicy is specified"));
}

}  // namespace

FieldErrors metadata_errors(const JobSet& jobset) {
  FieldErrors errors;
  const Json metadata = Json::object({{"labels", kube::to_json(jobset.metadata.labels)},
                                      {"annotations", kube::to_json(jobset.metadata.annotations)}});
  kube::check_labels_and_annotations(metadata, "metadata", errors);
  return errors;
}

FieldErrors child_errors(const JobSet& jobset) {
  FieldErrors errors;
  const Layout layout = Layout::of(jobset);
  for (std::size_t i = 0; i < jobset.spec.replicatedJobs.size() && errors.size() < kube::kMaxErrors;
       ++i) {
    const Json job = JobFactory(jobset, layout, i, {}).make(0, std::nullopt);
    const std::string path = kube::join_index("spec.replicatedJobs", i) + ".template";
    kube::check_labels_and_annotations(job.get("metadata"), path + ".metadata", errors);
    const std::string spec_path = path + ".spec";
    kube::check_pod_template(job.get_path({"spec", "template"}), spec_path + ".template", errors);
    check_restart_policy(job.get("spec"), spec_path, errors);
  }
  return errors;
}

}  // namespace trainer::jobset
