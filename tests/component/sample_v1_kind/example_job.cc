#include "tests/component/sample_v1_kind/example_job.hh"

#include <string>

#include "runtimes/v1/frameworks/support.hh"

namespace sample {
namespace {

namespace v1 = trainer::v1;

bool is_master(const v1::V1Job&, const v1::PodSlot& slot) {
  return slot.index == 0;
}

void check(const v1::V1Job& job, kube::FieldErrors& errors, std::vector<std::string>&) {
  if (v1::find_spec(job, v1::kWorker) == nullptr)
    errors.push_back(kube::required("spec.exampleReplicaSpecs.Worker", "must be present"));
}

void set_cluster_spec(const v1::V1Job& job, const v1::PodSlot& slot, const v1::Settings&,
                      kube::Json& pod) {
  v1::Environment env;
  env.set("RANK", std::to_string(slot.index));
  env.set("FIRST", v1::host(job, v1::kWorker));
  v1::add_to_all_containers(env, pod);
}

}  // namespace

const v1::Framework kExampleJob{
    .resource = {"kubeflow.org", "v1", "examplejobs", "ExampleJob", true},
    .singular = "examplejob",
    .name = "example",
    .replica_specs = "exampleReplicaSpecs",
    .roles = {v1::kWorker},
    .container = "example",
    .port_name = "examplejob-port",
    .port = 7777,
    .restart_policy = "Never",
    .is_master = is_master,
    .check = check,
    .set_cluster_spec = set_cluster_spec,
    .update_status = v1::decide_by_master_or_workers,
    .crd = {.members = {"nprocPerNode"}},
};

}  // namespace sample
