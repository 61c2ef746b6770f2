// Reads what `trainer plan` says about the pods of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/console.hh"
#include "controller/cli/read_queue.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"
#include "runtimes/fit/plan_fit.hh"

namespace trainer {

struct PlanQuery {
  // These are what `trainer render --jobs` prints for a job.
  std::vector<kube::Json> objects;
  // Pods of the job that exist already: those with a node are not asked for.
  std::vector<kube::Json> running;
  PlannedJob job;
};

// Reads nodes, pods and quotas, page by page, and compares the job with them. The answer names what
// the user may not read. `client` and `registry` outlive the task. Errors: the cluster does not
// answer.
kube::Task<kube::Result<fit::PlanAnswer>> read_plan(kube::ApiClient& client,
                                                    const Registry& registry, PlanQuery query);

// Renders jobs of files, with the runtimes of the cluster where the files have none, for
// read_plan(). Objects without a namespace get `ns`. Messages of admission are printed. All
// references outlive the task. Errors: kInvalid, after these messages, if a job is refused.
kube::Task<kube::Result<std::vector<kube::Json>>> render_for_plan(kube::ApiClient& client,
                                                                  const Registry& registry,
                                                                  std::vector<kube::Json> documents,
                                                                  std::string ns, Console& console);

// Plans an object that the cluster has, whose kind is registered; `pods` are its pods. `client` and
// `registry` outlive the task, as does `kind`. Errors: kInvalid if it cannot be rendered.
kube::Task<kube::Result<fit::PlanAnswer>> read_stored_plan(kube::ApiClient& client,
                                                           const Registry& registry,
                                                           const KindRegistration& kind,
                                                           kube::Json object,
                                                           std::vector<kube::Json> pods);

}  // namespace trainer
