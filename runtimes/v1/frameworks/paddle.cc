// PaddleJob (pkg/controller.v1/paddlepaddle).
#include <fmt/format.h>

#include "runtimes/lifecycle/processes.hh"
#include "runtimes/v1/frameworks/support.hh"

namespace trainer::v1::paddle {

extern const Framework kPaddleJob;

namespace {

using kube::Json;

bool is_master(const V1Job&, const PodSlot& slot) {
  return slot.role == kMaster;
}

void set_cluster_spec(const V1Job& job, const PodSlot& slot, const Settings&, Json& pod) {
  const bool has_master = find_spec(job, kMaster) != nullptr;
  const std::string_view leader = has_master ? kMaster : kWorker;
  const std::int64_t port = port_of(kPaddleJob, job, leader);
  Environment env;
  env.set("PYTHONUNBUFFERED", "1");
  env.set("PADDLE_JOB_ID", job.metadata.name);
  env.set("PADDLE_NNODES", std::to_string(process_count(total_replicas(job))));
  if (slot.role == leader && slot.index == 0) {
    // The pod's own name may not resolve before it is ready.
    env.set_from("POD_IP_DUMMY",
                 Json::object({{"fieldRef", Json::object({{"fieldPath", "status.podIP"}})}}));
    env.set("PADDLE_MASTER", fmt::format("$(POD_IP_DUMMY):{}", port));
  } else {
    env.set("PADDLE_MASTER", fmt::format("{}:{}", host(job, leader), port));
  }
  if (has_master) env.set(slot.role == kMaster ? "PADDLE_SERVER_NUM" : "PADDLE_TRAINER_NUM", "1");
  add_to_all_containers(env, pod);
}

// The Training Operator also keeps this field without any effect.
void warn(const V1Job& job, std::vector<std::string>& out) {
  if (job.spec.elasticPolicy)
    out.push_back(
        "spec.elasticPolicy: has no effect, because a PaddleJob has as many workers as its "
        "replicas "
        "say; leave it out, and change the replicas");
}

}  // namespace

const Framework kPaddleJob{
    .resource = {"kubeflow.org", "v1", "paddlejobs", "PaddleJob", true},
    .singular = "paddlejob",
    .name = "paddle",
    .replica_specs = "paddleReplicaSpecs",
    .roles = {kMaster, kWorker},
    .container = "paddle",
    .port_name = "master",
    .port = 36543,
    .restart_policy = "OnFailure",
    .has_selector = true,
    .deleted_noun = "Pod",
    .is_master = is_master,
    .warn = warn,
    .set_cluster_spec = set_cluster_spec,
    .update_status = decide_by_master_or_workers,
    .crd = {.members = {"elasticPolicy"},
            .elastic_members = {"minReplicas", "maxReplicas", "maxRestarts", "metrics"},
            .scale_path = ".spec.paddleReplicaSpecs.Worker.replicas"},
};

}  // namespace trainer::v1::paddle
