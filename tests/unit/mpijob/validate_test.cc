// An MPIJob of v2beta1 can be invalid in these ways.
#include "tests/unit/mpijob/mpijob_world.hh"

using namespace trainer;
using namespace trainer::mpijob;
using namespace trainer::mpijob::test;

namespace {

std::string errors_of(std::string_view change) {
  const auto job = v1::read_job(make_mpijob(change), kReplicaSpecs);
  REQUIRE(job);
  const auto errors = validate(*job);
  return errors.empty() ? "" : kube::to_string(errors);
}

std::string roles(std::string_view of) {
  return "spec: {mpiReplicaSpecs: " + std::string(of) + "}";
}

}  // namespace

TEST_CASE("an MPIJob with what it needs is valid") {
  CHECK(errors_of("").empty());
  CHECK(errors_of(roles("{Worker: null}")).empty());
  CHECK(errors_of(roles("{Chief: {replicas: -1}}")).empty());
  CHECK(errors_of("spec: {slotsPerWorker: 0, runPolicy: {cleanPodPolicy: All, backoffLimit: 0}}")
            .empty());
}

TEST_CASE("roles of an MPIJob are checked") {
  CHECK(errors_of("spec: null") == "spec.mpiReplicaSpecs: Required value: must have replica specs");
  CHECK(errors_of(roles("{Launcher: null, Worker: null}")) ==
        "spec.mpiReplicaSpecs[Launcher]: Required value: must have Launcher replica spec");
  CHECK(errors_of(roles("{Launcher: null}")) ==
        "spec.mpiReplicaSpecs[Launcher]: Required value: must have Launcher replica spec");
  CHECK(errors_of(roles("{Launcher: {replicas: 2}}")) ==
        "spec.mpiReplicaSpecs[Launcher].replicas: Invalid value: 2: must be 1");
  CHECK(errors_of(roles("{Worker: {replicas: null}}")) ==
        "spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0: must be greater than or equal to "
        "1");
  CHECK(errors_of(roles("{Worker: {replicas: -3}}")) ==
        "spec.mpiReplicaSpecs[Worker].replicas: Invalid value: -3: must be greater than or equal "
        "to 1");
  CHECK(errors_of(roles("{Worker: {restartPolicy: Always}}")) ==
        "spec.mpiReplicaSpecs[Worker].restartPolicy: Unsupported value: \"Always\": supported "
        "values: \"Never\", \"OnFailure\"");
  CHECK(errors_of(roles("{Launcher: {template: {spec: {containers: []}}}}")) ==
        "spec.mpiReplicaSpecs[Launcher].template.spec.containers: Required value: must define at "
        "least one container");
}

TEST_CASE("numbers and policies of an MPIJob are checked in mpi-operator's order") {
  CHECK(errors_of("spec: {slotsPerWorker: -1, runPolicy: {cleanPodPolicy: Sometimes, "
                  "ttlSecondsAfterFinished: -1, activeDeadlineSeconds: -5, backoffLimit: -2}}") ==
        "[spec.slotsPerWorker: Invalid value: -1: must be greater than or equal to 0, "
        "spec.runPolicy.cleanPodPolicy: Unsupported value: \"Sometimes\": supported values: "
        "\"All\", \"None\", \"Running\", spec.runPolicy.ttlSecondsAfterFinished: Invalid value: "
        "-1: must be greater than or equal to 0, spec.runPolicy.activeDeadlineSeconds: Invalid "
        "value: -5: must be greater than or equal to 0, spec.runPolicy.backoffLimit: Invalid "
        "value: -2: must be greater than or equal to 0]");
}

TEST_CASE("the name of an MPIJob leaves room for those of its workers") {
  const auto with_name = [](const std::string& name, const std::string& workers) {
    return errors_of("metadata: {name: " + name +
                     "}\nspec: {mpiReplicaSpecs: {Worker: {replicas: " + workers + "}}}");
  };
  CHECK(with_name(std::string(54, 'a'), "10").empty());
  CHECK_FALSE(with_name(std::string(54, 'a'), "11").empty());
  CHECK_FALSE(with_name(std::string(55, 'a'), "1").empty());
  CHECK(with_name("a.b", "1")
            .starts_with("metadata.name: Invalid value: \"a.b\": will not able to create pod and "
                         "service with invalid "
                         "DNS label \"a.b-worker-0\": a DNS-1035 label must consist of"));
}

TEST_CASE("an MPIJob has a bound, and an invalid one gets an event and nothing else") {
  CHECK(errors_of(roles("{Worker: {replicas: 10001}}")).find("at most 10000 workers") !=
        std::string::npos);
  CHECK(errors_of(roles("{Worker: {replicas: 10000}}")).empty());
  // Nothing is made for each of so many workers before the bound counts.
  const MPIJobWorld huge(make_mpijob(roles("{Worker: {replicas: 2147483647}}")));
  CHECK(huge.has_event("at most 10000 workers"));
  const std::string longest =
      "metadata: {name: " + std::string(50, 'a') + ", namespace: " + std::string(63, 'b') + "}\n";
  CHECK(errors_of(longest + roles("{Worker: {replicas: 9000}}")).find("ConfigMap") !=
        std::string::npos);
  MPIJobWorld world(make_mpijob("spec: {slotsPerWorker: -1}"));
  CHECK(world.writes == 0);
  CHECK(world.events ==
        std::vector<std::string>{"Warning ValidationError: Found validation errors: "
                                 "spec.slotsPerWorker: Invalid value: -1: must be greater than or "
                                 "equal to 0"});
  // A job that turns invalid keeps what it has, and is served again once it is valid.
  MPIJobWorld later;
  later.change("spec: {slotsPerWorker: -1}");
  later.objects.erase("Service/m");
  later.settle();
  CHECK_FALSE(later.has("Service/m"));
  later.change("spec: {slotsPerWorker: 1}");
  CHECK(later.has("Service/m"));
}
