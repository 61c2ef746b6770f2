// The schema of jobs with roles, kubeflow.org/v1 and v2beta1.
#pragma once

#include <string_view>
#include <vector>

#include "api/describe/schema_builder.hh"

namespace trainer::v1 {

// The schemas of the kinds differ in these members.
struct JobSchemaMembers {
  std::string_view replica_specs;      // "mpiReplicaSpecs"
  std::vector<std::string_view> spec;  // besides runPolicy and the roles
  std::vector<std::string_view> elastic_policy =
      {};  // the members of `spec.elasticPolicy`; empty for all
};

// The members of MPIJobs at v1 and at v2beta1. Both versions have all of them, since the API server
// stores an object at one version, and drops what that version lacks.
inline const std::vector<std::string_view> kMPIJobMembers{
    "slotsPerWorker",   "mainContainer",          "cleanPodPolicy",   "runLauncherAsWorker",
    "sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation"};

// Returns the schema of a whole job. It has the members of JobSpec that `members` names.
wire::Schema make_job_schema(const JobSchemaMembers& members);

}  // namespace trainer::v1
