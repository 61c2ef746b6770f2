// The pods and objects of an MPIJob of v2beta1.
#include "kube/model/json_text.hh"
#include "tests/unit/mpijob/mpijob_world.hh"

using namespace trainer;
using namespace trainer::mpijob;
using namespace trainer::mpijob::test;

namespace {

const kube::Json& launcher_template(const MPIJobWorld& world) {
  return world.at("Job/m-launcher").get("spec").get("template");
}

// "A=1 B": names with their values, in order.
std::string env_of(const kube::Json& pod) {
  std::string text;
  for (const auto& each : pod.get("spec").get_array("containers")[0].get_array("env")) {
    if (!text.empty()) text += " ";
    text += each.get_string("name");
    if (each.find("value")) text += "=" + std::string(each.get_string("value"));
  }
  return text;
}

}  // namespace

TEST_CASE("each implementation of MPI has its variables and its form of a hostfile") {
  const auto of = [](const std::string& implementation) {
    const MPIJobWorld world(
        make_mpijob("spec: {slotsPerWorker: 3, mpiImplementation: " + implementation + "}"));
    return env_of(launcher_template(world)) + "\n" +
           std::string(world.at("ConfigMap/m-config").get("data").get_string("hostfile"));
  };
  const std::string head = "K_MPI_JOB_ROLE=launcher ";
  const std::string tail = " NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES\n";
  const std::string colons = "m-worker-0.m.ns.svc:3\nm-worker-1.m.ns.svc:3\n";
  CHECK(of("OpenMPI") == head +
                             "OMPI_MCA_orte_keep_fqdn_hostnames=true "
                             "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile "
                             "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10 "
                             "OMPI_MCA_orte_set_default_slots=3" +
                             tail + "m-worker-0.m.ns.svc slots=3\nm-worker-1.m.ns.svc slots=3\n");
  CHECK(of("Intel") == head +
                           "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile "
                           "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o ConnectionAttempts=10 "
                           "I_MPI_PERHOST=3" +
                           tail + colons);
  CHECK(of("MPICH") == head +
                           "HYDRA_HOST_FILE=/etc/mpi/hostfile "
                           "HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10" +
                           tail + colons);
}

TEST_CASE("a worker of an MPIJob has its name, its keys and an SSH server") {
  const MPIJobWorld world(make_mpijob(
      "spec: {mpiReplicaSpecs: {Worker: {restartPolicy: OnFailure, template: {metadata: {name: n, "
      "finalizers: [a/b], labels: {x: z, training.kubeflow.org/job-role: chief}}, spec: {hostname: "
      "h, dnsConfig: {searches: [mine]}}}}}}"));
  const auto& pod = world.at("Pod/m-worker-1");
  CHECK(kube::print_json(pod.get("metadata").get("labels")) ==
        R"({"training.kubeflow.org/job-name":"m","training.kubeflow.org/job-role":"worker",)"
        R"("training.kubeflow.org/operator-name":"mpi-operator",)"
        R"("training.kubeflow.org/replica-index":"1","x":"z"})");
  CHECK(pod.get("metadata").find("finalizers") == nullptr);
  const auto& spec = pod.get("spec");
  CHECK(spec.get_string("hostname") == "m-worker-1");
  CHECK(spec.get_string("subdomain") == "m");
  CHECK(spec.get_string("restartPolicy") == "OnFailure");
  CHECK(kube::print_json(spec.get("dnsConfig")) ==
        R"({"searches":["mine","m.ns.svc.cluster.local"]})");
  const auto& container = spec.get_array("containers")[0];
  CHECK(kube::print_json(container.get("command")) == R"(["/usr/sbin/sshd","-De"])");
  CHECK(env_of(pod) == "K_MPI_JOB_ROLE=worker");
  CHECK(kube::print_json(container.get("volumeMounts")) ==
        R"([{"mountPath":"/root/.ssh","name":"ssh-auth"}])");
  CHECK(spec.get_array("volumes")[0].get("secret").get_int("defaultMode") == 0600);
}

TEST_CASE("a worker with arguments keeps them, and other folders of keys have the usual mode") {
  const MPIJobWorld world(make_mpijob(
      "spec: {sshAuthMountPath: /home/u/.ssh, mpiReplicaSpecs: {Worker: {template: {spec: "
      "{hostNetwork: true, containers: [{name: main, image: i, args: [a]}]}}}}}"));
  const auto& spec = world.at("Pod/m-worker-0").get("spec");
  CHECK(spec.get_array("containers")[0].find("command") == nullptr);
  CHECK(spec.get_array("volumes")[0].get("secret").find("defaultMode") == nullptr);
  CHECK(spec.get_string("dnsPolicy") == "ClusterFirstWithHostNet");
}

TEST_CASE("a launcher that is a worker, too, is the first host and has the index 0") {
  const MPIJobWorld world(make_mpijob("spec: {runLauncherAsWorker: true}"));
  const auto& data = world.at("ConfigMap/m-config").get("data");
  CHECK(data.get_string("hostfile").starts_with("m-launcher.m.ns.svc slots=1\nm-worker-0."));
  CHECK(data.get_string("discover_hosts.sh") == "#!/bin/sh\necho m-launcher.m.ns.svc\n");
  CHECK(world.at("Service/m").get("spec").get_bool("publishNotReadyAddresses"));
  const auto index = [](const kube::Json& pod) {
    return pod.get("metadata").get("labels").get_string("training.kubeflow.org/replica-index");
  };
  CHECK(index(launcher_template(world)) == "0");
  CHECK(index(world.at("Pod/m-worker-0")) == "1");
  CHECK(env_of(launcher_template(world)).find("NVIDIA") == std::string::npos);
  CHECK(index(launcher_template(MPIJobWorld())).empty());
}

TEST_CASE("a launcher's Job takes the run policy, and a policy of the template is reported") {
  MPIJobWorld world(make_mpijob(
      "spec: {runPolicy: {backoffLimit: 4, activeDeadlineSeconds: 900, ttlSecondsAfterFinished: "
      "600}, mpiReplicaSpecs: {Launcher: {restartPolicy: Never, template: {spec: {restartPolicy: "
      "Always}}}}}"));
  const auto& spec = world.at("Job/m-launcher").get("spec");
  CHECK(spec.get_int("backoffLimit") == 4);
  CHECK(spec.get_int("activeDeadlineSeconds") == 900);
  CHECK(spec.get_int("ttlSecondsAfterFinished") == 600);
  CHECK(spec.get_string("podReplacementPolicy") == "Failed");
  CHECK(spec.find("suspend") == nullptr);
  CHECK(launcher_template(world).get("spec").get_string("restartPolicy") == "Never");
  CHECK(world.has_event("Warning SetPodTemplateRestartPolicy"));
  const MPIJobWorld without_policy;
  const auto& plain = without_policy.at("Job/m-launcher").get("spec");
  CHECK(plain.find("backoffLimit") == nullptr);
}

TEST_CASE("a cluster domain ends the names of hosts") {
  const MPIJobWorld world(make_mpijob(), {.gang_scheduler = "", .cluster_domain = "example.org"});
  CHECK(world.at("ConfigMap/m-config").get("data").get_string("hostfile") ==
        "m-worker-0.m.ns.svc.example.org slots=1\nm-worker-1.m.ns.svc.example.org slots=1\n");
}

TEST_CASE("discovered hosts are those of running workers, by name") {
  MPIJobWorld world(make_mpijob("spec: {mpiReplicaSpecs: {Worker: {replicas: 11}}}"));
  for (const char* name : {"m-worker-2", "m-worker-10"}) world.pod(name, "Running");
  CHECK(world.at("ConfigMap/m-config").get("data").get_string("discover_hosts.sh") ==
        "#!/bin/sh\necho m-worker-10.m.ns.svc\necho m-worker-2.m.ns.svc\n");
}

TEST_CASE("render shows all objects of an MPIJob, as they are created") {
  const auto job = v1::read_job(
      make_mpijob(
          "spec: {launcherCreationPolicy: WaitForWorkersReady, runPolicy: {suspend: true}}"),
      kReplicaSpecs);
  std::string kinds;
  for (const auto& object : all_children(*job, {.gang_scheduler = "volcano", .cluster_domain = ""}))
    kinds += std::string(object.get_string("kind")) + " ";
  CHECK(kinds == "Service ConfigMap Secret PodGroup Pod Pod Job ");
}
