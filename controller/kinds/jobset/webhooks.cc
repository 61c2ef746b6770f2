#include "controller/kinds/jobset/webhooks.hh"

#include <utility>

#include "controller/kinds/common/admission_facts.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

constexpr const char* kConfiguration = "jobset.trainer.kubeflow.org";
constexpr const char* kMutate = "/mutate-jobset-x-k8s-io-v1alpha2-jobset";
constexpr const char* kValidate = "/validate-jobset-x-k8s-io-v1alpha2-jobset";

Task<Result<AdmissionAnswer>> mutate(AdmissionRequest request) {
  co_return mutate_jobset(request);
}

Task<Result<AdmissionAnswer>> validate(AdmissionRequest request, AdmissionReader& reader,
                                       jobset::Gates gates) {
  const auto facts = co_await read_facts(reader, request);
  if (!facts) co_return tl::unexpected(facts.error());
  co_return validate_jobset(request, facts->lookups(), gates);
}

Webhook webhook(bool is_mutating, std::string name, std::string path) {
  Webhook made;
  made.configuration = kConfiguration;
  made.is_mutating = is_mutating;
  made.name = std::move(name);
  made.path = std::move(path);
  made.resource = kJobSets;
  made.skips_own_writes = true;
  return made;
}

}  // namespace

AdmissionRegistration jobset_admission(std::shared_ptr<const JobSetState> shared,
                                       const jobset::Gates& gates) {
  // If another controller manages JobSets, its webhooks validate them.
  const auto is_active = [shared] {
    return shared->ownership.mode() == JobSetControllerMode::kOwn;
  };
  AdmissionRegistration made;
  made.webhooks = {webhook(true, "defaulter.jobset.trainer.kubeflow.org", kMutate),
                   webhook(false, "validator.jobset.trainer.kubeflow.org", kValidate)};
  made.handlers = {
      {kMutate,
       [](AdmissionRequest request, AdmissionReader&) { return mutate(std::move(request)); },
       is_active},
      {kValidate,
       [gates](AdmissionRequest request, AdmissionReader& reader) {
         return validate(std::move(request), reader, gates);
       },
       is_active},
  };
  return made;
}

}  // namespace trainer
