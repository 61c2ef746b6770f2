// JobSets are admitted here; the rules are the JobSet controller's (JobSet,
// pkg/webhooks/jobset_webhook.go).
#include <optional>
#include <string>

#include "api/api.hh"
#include "kube/model/meta.hh"
#include "runtimes/admission/admission.hh"
#include "runtimes/admission/answers.hh"
#include "runtimes/jobset/admission.hh"

namespace trainer {

using kube::Json;

namespace {

// Warns about the first pattern for which the JobSet controller will not search.
void warn_about_patterns(const JobSetSpec& spec, AdmissionAnswer& answer) {
  if (!answer.is_allowed || !spec.failurePolicy) return;
  const jobset::FailurePatterns patterns(*spec.failurePolicy);
  if (patterns.refusal()) answer.warnings.push_back(patterns.refusal()->to_string());
}

bool has_webhook_defaults(const Json& object) {
  Json defaulted = object;
  jobset::apply_webhook_defaults(defaulted);
  return defaulted == object;
}

}  // namespace

AdmissionAnswer mutate_jobset(const AdmissionRequest& request) {
  // `kubectl apply` of the same file sends its lists without defaults. Since they are immutable, an
  // update gets defaults if, and only if, the stored object has them.
  const bool is_defaulted =
      request.operation == "CREATE" ||
      (request.operation == "UPDATE" && has_webhook_defaults(request.old_object));
  if (!is_defaulted) return {};
  Json object = request.object;
  jobset::apply_webhook_defaults(object);
  return allow_with(request.object, object, {});
}

AdmissionAnswer validate_jobset(const AdmissionRequest& request, const AdmissionLookups& lookups,
                                const jobset::Gates& gates) {
  const bool is_create = request.operation == "CREATE";
  if (!is_create && request.operation != "UPDATE") return {};
  const std::string name = kube::ObjectMeta::of(request.object).name;
  const auto jobset = read_jobset(request.object);
  if (!jobset) return refuse_jobset(name, jobset.error());
  if (is_create) {
    const jobset::FindClaim find_claim = [&lookups](const std::string& ns,
                                                    const std::string& claim) {
      return lookups.claim ? lookups.claim(ns, claim) : std::optional<Json>();
    };
    AdmissionAnswer answer =
        refuse_jobset(name, jobset::validate_create(*jobset, gates, find_claim));
    warn_about_patterns(jobset->spec, answer);
    return answer;
  }
  if (jobset->metadata.deletion_timestamp) return {};
  const auto before = read_jobset(request.old_object);
  if (!before) return {};  // the stored object cannot be compared with what it should have been
  AdmissionAnswer answer = refuse_jobset(name, jobset::validate_update(*before, *jobset, gates));
  // A policy can be added, and then does not change any more.
  if (!before->spec.failurePolicy) warn_about_patterns(jobset->spec, answer);
  return answer;
}

}  // namespace trainer
