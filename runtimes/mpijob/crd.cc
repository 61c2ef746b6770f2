#include "api/kinds/v1job_schema.hh"
#include "runtimes/mpijob/plan.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

// mpi-operator's CRD has no rules: each member may change.
void remove_rules(Json& schema) {
  if (!schema.is_object()) return;
  schema.erase("x-kubernetes-validations");
  for (auto& [name, member] : schema.as_object()) {
    if (name == "properties")
      for (auto& [property, below] : member.as_object()) remove_rules(below);
    if (name == "items" || name == "additionalProperties") remove_rules(member);
  }
}

// Both versions have the members of both, since one is stored for the other. A default is written
// where an object is created at this version only.
wire::Schema make_schema() {
  wire::Schema schema = v1::make_job_schema({kReplicaSpecs, v1::kMPIJobMembers});
  Json& spec = schema.document["properties"]["spec"];
  remove_rules(spec);
  Json& members = spec["properties"];
  members["slotsPerWorker"].set("default", 1);
  members["runLauncherAsWorker"].set("default", false);
  members["sshAuthMountPath"].set("default", "/root/.ssh");
  members["launcherCreationPolicy"].set("default", "AtStartup");
  members["mpiImplementation"].set("default", "OpenMPI");
  members["mpiImplementation"].set("enum", Json::array({"OpenMPI", "Intel", "MPICH"}));
  schema.document.set("description", "A job of MPI: a launcher reaches its workers by SSH.");
  return schema;
}

}  // namespace

KindVersion crd_version() {
  // The type of the last condition, whatever its status is.
  return {.name = kMPIJobs.version,
          .make_schema = make_schema,
          .columns = {{"State", "string", ".status.conditions[-1:].type"}, kAgeColumn},
          .is_stored = false};
}

}  // namespace trainer::mpijob
