#include "controller/kinds/v1/webhooks.hh"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "runtimes/admission/v1job.hh"

namespace trainer::v1 {
namespace {

using kube::Result;
using kube::Task;

Task<Result<AdmissionAnswer>> validate(AdmissionRequest request, const Framework& framework,
                                       std::shared_ptr<const Settings> settings) {
  co_return validate_v1job(request, framework, *settings);
}

}  // namespace

AdmissionRegistration job_admission(const Framework& framework, const Settings& settings) {
  const auto kept = std::make_shared<const Settings>(settings);
  Webhook webhook;
  webhook.configuration = "validator.training-operator.kubeflow.org";
  webhook.name = fmt::format("validator.{}.training-operator.kubeflow.org", framework.singular);
  webhook.path = fmt::format("/validate-kubeflow-org-v1-{}", framework.singular);
  webhook.resource = framework.resource;
  AdmissionRegistration made;
  made.handlers = {{webhook.path, [&framework, kept](AdmissionRequest request, AdmissionReader&) {
                      return validate(std::move(request), framework, kept);
                    }}};
  made.webhooks = {std::move(webhook)};
  return made;
}

}  // namespace trainer::v1
