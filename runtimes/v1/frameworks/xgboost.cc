// XGBoostJob, for LightGBM as well (pkg/controller.v1/xgboost).
#include <utility>

#include "runtimes/v1/frameworks/support.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1 {

extern const Framework kXGBoostJob;

namespace {

using kube::Json;

bool is_master(const Job&, const PodSlot& slot) {
  return slot.role == kMaster;
}

void check(const Job& job, kube::FieldErrors& errors, std::vector<std::string>&) {
  if (!find_spec(job, kMaster))
    errors.push_back(kube::required(role_path(kXGBoostJob, kMaster), "must be present"));
  check_single_master(kXGBoostJob, job, errors);
}

void set_cluster_spec(const Job& job, const PodSlot& slot, const Settings&, Json& pod) {
  const std::int64_t total = total_replicas(job);
  const std::int32_t rank = slot.index + (slot.role == kWorker ? replicas_of(job, kMaster) : 0);
  std::string workers;
  for (std::int32_t i = 0; i + 1 < total; ++i)
    workers += (i > 0 ? "," : "") + host(job, kWorker, i);
  for (Json& container : containers_of(pod)) {
    append_env(container, "MASTER_PORT", std::to_string(port_of(kXGBoostJob, job, kMaster)));
    append_env(container, "MASTER_ADDR", host(job, kMaster));
    append_env(container, "WORLD_SIZE", std::to_string(total));
    append_env(container, "RANK", std::to_string(rank));
    append_env(container, "PYTHONUNBUFFERED", "1");
    if (total <= 1) continue;
    append_env(container, "WORKER_PORT", std::to_string(port_of(kXGBoostJob, job, kWorker)));
    append_env(container, "WORKER_ADDRS", workers);
  }
}

// Running is set before the end, also where no reconcile has seen the job run.
void update_status(ReconcileContext& context) {
  for (const RoleState& role : context.roles)
    if (role.counters.failed > 0 || (role.name == kMaster && role.counters.succeeded > 0))
      set_running(context, "XGBoostJob " + context.name() + " is running.");
  decide_by_one_role(context, kMaster, kFailed);
}

}  // namespace

const Framework kXGBoostJob{
    .resource = {"kubeflow.org", "v1", "xgboostjobs", "XGBoostJob", true},
    .singular = "xgboostjob",
    .name = "xgboost",
    .replica_specs = "xgbReplicaSpecs",
    .roles = {kMaster, kWorker},
    .container = "xgboost",
    .port_name = "xgboostjob-port",
    .port = 9999,
    .restart_policy = "Never",
    .is_master = is_master,
    .check = check,
    .set_cluster_spec = set_cluster_spec,
    .update_status = update_status,
};

}  // namespace trainer::v1
