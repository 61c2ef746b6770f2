// Admission warns about these MPIJobs of v2beta1.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtimes/admission/mpijob.hh"
#include "tests/unit/mpijob/mpijob_world.hh"

using namespace trainer;
using namespace trainer::mpijob;
using namespace trainer::mpijob::test;

namespace {

std::string said(std::string_view change, const MPISettings& settings = {}) {
  AdmissionRequest request;
  request.operation = "CREATE";
  request.object = make_mpijob(change);
  const AdmissionAnswer answer = review_mpijob(request, settings);
  CHECK(answer.is_allowed);
  return fmt::format("{}", fmt::join(answer.warnings, "\n"));
}

std::string launcher(const std::string& spec) {
  return "spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {" + spec + "}}}}}";
}

std::string command(const std::string& words, const std::string& more = "") {
  return launcher("containers: [{name: main, image: i, command: [" + words + "]" + more + "}]");
}

}  // namespace

TEST_CASE("an MPIJob without anything odd in it gets no warning") {
  CHECK(said("") == "");
  CHECK(said("spec: {runPolicy: {managedBy: kubeflow.org/mpi-operator}}") == "");
  AdmissionRequest update;
  update.operation = "UPDATE";
  update.object = make_mpijob("spec: {mainContainer: x}");
  CHECK(review_mpijob(update, {}).warnings.empty());
}

TEST_CASE("an invalid MPIJob is stored, and a warning says that nothing is made for it") {
  CHECK(said("spec: {slotsPerWorker: -1, mainContainer: x}") ==
        "the controller creates nothing for this job until it is corrected: spec.slotsPerWorker: "
        "Invalid value: -1: must be greater than or equal to 0");
}

TEST_CASE("an MPIJob that is left to another controller gets a warning, unless Kueue does so") {
  CHECK(said("spec: {runPolicy: {managedBy: ''}, mainContainer: x}") ==
        "spec.runPolicy.managedBy: \"\" leaves this job to another controller; leave it out, or "
        "write kubeflow.org/mpi-operator");
  CHECK(said("spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, mainContainer: x}") == "");
}

TEST_CASE("members of an MPIJob without an effect are named") {
  CHECK_THAT(said("spec: {mainContainer: x}"), kube::test::contains("spec.mainContainer: has no"));
  CHECK_THAT(said("spec: {cleanPodPolicy: All}"),
             kube::test::contains("set spec.runPolicy.cleanPodPolicy"));
  CHECK_THAT(said("spec: {mpiReplicaSpecs: {Chief: {replicas: 1}}}"),
             kube::test::contains("spec.mpiReplicaSpecs[Chief]: has no effect"));
  CHECK_THAT(said("spec: {launcherCreationPolicy: Later}"),
             kube::test::contains("\"Later\" counts as WaitForWorkersReady"));
  CHECK_THAT(said("spec: {runPolicy: {schedulingPolicy: {minAvailable: 4}}}"),
             kube::test::contains("waits for 4 pods, and this job has 3"));
}

TEST_CASE("members of an MPIJob's templates that the controller replaces are named") {
  CHECK(said(launcher("restartPolicy: Always, hostname: h, subdomain: s")) ==
        "spec.mpiReplicaSpecs[Launcher].template.spec.restartPolicy: Always has no effect, and "
        "pods have OnFailure: set spec.mpiReplicaSpecs[Launcher].restartPolicy\n"
        "spec.mpiReplicaSpecs[Launcher].template.spec.hostname: h has no effect, because hosts "
        "have the names of the hostfile; leave it out\n"
        "spec.mpiReplicaSpecs[Launcher].template.spec.subdomain: s has no effect, because hosts "
        "have the names of the job's Service; leave it out");
  CHECK(said(launcher("restartPolicy: OnFailure, dnsPolicy: Default")) == "");
  CHECK_THAT(said(launcher("hostNetwork: true, dnsPolicy: Default")),
             kube::test::contains("dnsPolicy: Default has no effect"));
  CHECK(said(launcher("schedulerName: mine")) == "");
  CHECK_THAT(
      said(launcher("schedulerName: mine"), {.gang_scheduler = "volcano", .cluster_domain = ""}),
      kube::test::contains("schedulerName: mine has no effect"));
  CHECK(said(command("mpirun",
                     ", env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, "
                     "{name: K_MPI_JOB_ROLE, value: mine}, {name: A, value: b}]")) ==
        "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].env: NVIDIA_VISIBLE_DEVICES, "
        "K_MPI_JOB_ROLE have no effect, because the controller sets them; leave them out");
  CHECK_THAT(said(command("mpirun -n 2 x")), kube::test::contains("containers[0].command[0]"));
}

TEST_CASE("an MPIJob whose pods will be refused is named") {
  CHECK_THAT(said(launcher("volumes: [{name: ssh-auth, emptyDir: {}}]")),
             kube::test::contains("the API server will refuse pods of this job: "
                                  "spec.mpiReplicaSpecs[Launcher].template.spec.volumes"));
  CHECK_THAT(said(launcher("containers: [{name: main}, {name: main, image: i}]")),
             kube::test::contains("the API server will refuse pods of this job"));
}

TEST_CASE("a job that uses names of OpenMPI 5 and names no hosts is warned") {
  const auto is_warned = [](const std::string& words, const std::string& more = "") {
    return said(command(words, more)).find("OpenMPI 5 does not read") != std::string::npos;
  };
  const std::string args = ", env: [{name: PRTE_MCA_plm_ssh_args, value: '-v'}]";
  const std::string hosts = ", env: [{name: PRTE_MCA_prte_default_hostfile, value: /h}]";
  CHECK(is_warned("prterun, x"));
  CHECK(is_warned("bash, -c, 'mpirun --prtemca a b x'"));
  CHECK(is_warned("mpirun, x", args));
  CHECK_FALSE(is_warned("mpirun, x", hosts));
  CHECK_FALSE(is_warned("mpirun, --hostfile, /etc/mpi/hostfile, x", args));
  CHECK_FALSE(is_warned("prterun, -H, a, x"));
  CHECK_FALSE(is_warned("mpirun, x"));
}
