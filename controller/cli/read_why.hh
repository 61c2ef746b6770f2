// Reads what `trainer why` says about one object.
#pragma once

#include <string_view>
#include <vector>

#include "controller/cli/why_report.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"

namespace trainer {

struct WhyAnswer {
  WhyReport report;
  std::vector<kube::Json> pods;  // those of the object
};

// `kind` has the hook. All arguments outlive the task. Errors: the pods cannot be read, or the
// object is of no form that the hook knows.
kube::Task<kube::Result<WhyAnswer>> read_why(kube::ApiClient& client, const KindRegistration& kind,
                                             const kube::Json& object, std::string_view program);

}  // namespace trainer
