// JAXJob (pkg/controller.v1/jax).
#include "runtimes/lifecycle/processes.hh"
#include "runtimes/v1/frameworks/support.hh"

namespace trainer::v1::jax {

extern const Framework kJAXJob;

namespace {

using kube::Json;

bool is_master(const V1Job&, const PodSlot& slot) {
  return slot.index == 0;
}

void set_cluster_spec(const V1Job& job, const PodSlot& slot, const Settings&, Json& pod) {
  Environment env;
  env.set("PYTHONUNBUFFERED", "1");
  env.set("COORDINATOR_PORT", std::to_string(port_of(kJAXJob, job, kWorker)));
  env.set("COORDINATOR_ADDRESS", host(job, kWorker));
  env.set("NUM_PROCESSES", std::to_string(process_count(total_replicas(job))));
  env.set("PROCESS_ID", std::to_string(slot.index));
  add_to_all_containers(env, pod);
}

}  // namespace

const Framework kJAXJob{
    .resource = {"kubeflow.org", "v1", "jaxjobs", "JAXJob", true},
    .singular = "jaxjob",
    .name = "jax",
    .replica_specs = "jaxReplicaSpecs",
    .roles = {kWorker},
    .container = "jax",
    .port_name = "jaxjob-port",
    .port = 6666,
    .restart_policy = "Never",
    .has_selector = true,
    .deleted_noun = "Pod",
    .is_master = is_master,
    .set_cluster_spec = set_cluster_spec,
    .update_status = decide_by_master_or_workers,
    .crd = {.scale_path = ".spec.jaxReplicaSpecs.Worker.replicas"},
};

}  // namespace trainer::v1::jax
