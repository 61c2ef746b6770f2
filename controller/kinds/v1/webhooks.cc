#include "controller/kinds/v1/webhooks.hh"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "runtimes/admission/v1job.hh"

namespace trainer::v1 {
namespace {

using kube::Result;
using kube::Task;

struct Names {
  std::string webhook;
  std::string path;
};

// A Webhook holds views.
const Names& names_of(const Framework& framework) {
  static const std::map<std::string_view, Names> all = [] {
    std::map<std::string_view, Names> made;
    for (const Framework* each : frameworks()) {
      made[each->singular] = {
          fmt::format("validator.{}.training-operator.kubeflow.org", each->singular),
          fmt::format("/validate-kubeflow-org-v1-{}", each->singular)};
    }
    return made;
  }();
  return all.at(framework.singular);
}

Task<Result<AdmissionAnswer>> validate(AdmissionRequest request, const Framework& framework) {
  co_return validate_v1job(request, framework);
}

}  // namespace

AdmissionRegistration job_admission(const Framework& framework) {
  const Names& names = names_of(framework);
  Webhook webhook;
  webhook.configuration = "validator.training-operator.kubeflow.org";
  webhook.name = names.webhook;
  webhook.path = names.path;
  webhook.resource = framework.resource;
  AdmissionRegistration made;
  made.webhooks = {std::move(webhook)};
  made.handlers = {{names.path, [&framework](AdmissionRequest request, AdmissionReader&) {
                      return validate(std::move(request), framework);
                    }}};
  return made;
}

}  // namespace trainer::v1
