#include <string>

#include "api/api.hh"
#include "tests/support/catch.hh"

namespace trainer {
namespace {

TEST_CASE("the merge keys of a JobSet's lists are Kubernetes' own") {
  const auto [path, key] = GENERATE(table<const char*, const char*>({
      {"replicatedJobs", "name"},
      {"replicatedJobs.template.spec.template.spec.containers", "name"},
      {"replicatedJobs.template.spec.template.spec.containers.env", "name"},
      {"replicatedJobs.template.spec.template.spec.containers.ports", "containerPort"},
      {"replicatedJobs.template.spec.template.spec.containers.volumeMounts", "mountPath"},
      {"replicatedJobs.template.spec.template.spec.initContainers", "name"},
      {"replicatedJobs.template.spec.template.spec.initContainers.env", "name"},
      {"replicatedJobs.template.spec.template.spec.initContainers.volumeMounts", "mountPath"},
      {"replicatedJobs.template.spec.template.spec.imagePullSecrets", "name"},
      {"replicatedJobs.template.spec.template.spec.schedulingGates", "name"},
      {"replicatedJobs.template.spec.template.spec.volumes", "name"},
  }));
  CHECK(jobset_merge_keys().key_of(path) == key);
}

TEST_CASE("lists without a merge key are atomic") {
  const std::string pod = "replicatedJobs.template.spec.template.spec.";
  for (const char* path :
       {"tolerations", "containers.command", "containers.envFrom",
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"})
    CHECK_FALSE(jobset_merge_keys().key_of(pod + path));
  CHECK_FALSE(jobset_merge_keys().key_of("replicatedJobs.dependsOn"));
}

}  // namespace
}  // namespace trainer
