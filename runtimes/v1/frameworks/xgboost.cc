// XGBoostJob, for LightGBM as well (pkg/controller.v1/xgboost).
#include <utility>

#include "runtimes/lifecycle/processes.hh"
#include "runtimes/v1/frameworks/support.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1::xgboost {

extern const Framework kXGBoostJob;

namespace {

using kube::Json;

bool is_master(const V1Job&, const PodSlot& slot) {
  return slot.role == kMaster;
}

void check(const V1Job& job, kube::FieldErrors& errors, std::vector<std::string>&) {
  if (!find_spec(job, kMaster))
    errors.push_back(kube::required(role_path(kXGBoostJob, kMaster), "must be present"));
  check_single_master(kXGBoostJob, job, errors);
}

constexpr std::string_view kAddresses = "WORKER_ADDRS";

void set_cluster_spec(const V1Job& job, const PodSlot& slot, const Settings&, Json& pod) {
  const std::int64_t total = total_replicas(job);
  const std::int64_t rank = slot.index + (slot.role == kWorker ? replicas_of(job, kMaster) : 0);
  Environment env;
  env.set("MASTER_PORT", std::to_string(port_of(kXGBoostJob, job, kMaster)));
  env.set("MASTER_ADDR", host(job, kMaster));
  env.set("WORLD_SIZE", std::to_string(process_count(total)));
  env.set("RANK", std::to_string(rank));
  env.set("PYTHONUNBUFFERED", "1");
  if (total > 1) {
    std::string workers;
    for (std::int32_t i = 0; i + 1 < total; ++i)
      workers += (i > 0 ? "," : "") + host(job, kWorker, i);
    env.set("WORKER_PORT", std::to_string(port_of(kXGBoostJob, job, kWorker)));
    env.set(kAddresses, std::move(workers));
  }
  add_to_all_containers(env, pod);
}

std::vector<GeneratedText> measure(const V1Job& job, const Settings&) {
  const std::int64_t names = total_replicas(job) - 1;
  if (names < 1) return {};
  const auto shortest = static_cast<std::int64_t>(host(job, kWorker, 0).size());
  GeneratedText text;
  text.name = kAddresses;
  text.path = role_path(kXGBoostJob, kWorker) + ".replicas";
  text.bytes = bytes_of_variable(kAddresses, names * shortest + further_digits(names) + names - 1);
  text.is_in_each_container = true;
  return {std::move(text)};
}

// Running is set before the end, also where no reconcile has seen the job run.
void update_status(V1JobContext& context) {
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
    .measure = measure,
    .update_status = update_status,
};

}  // namespace trainer::v1::xgboost
