#include <fmt/format.h>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

std::string hostfile_of(const Built& result) {
  return std::string(
      dependent(result, "ConfigMap", "j-mpi-hostfile")->find("data")->get_string("hostfile"));
}

std::string mpi(const std::string& settings) {
  return "mlPolicy: {mpi: {" + settings + "}}";
}

TEST_CASE("hostfiles and environment of each implementation", "[mpi]") {
  struct Row {
    const char* implementation;
    const char* hostfile;
    Words env;
  };
  const Row rows[] = {
      {"OpenMPI",
       "j-node-0-0.j slots=4\nj-node-0-1.j slots=4\n",
       {"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames=true", "OMPI_MCA_orte_set_default_slots=4",
        "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10"}},
      {"Intel",
       "j-node-0-0.j:4\nj-node-0-1.j:4\n",
       {"I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o ConnectionAttempts=10", "I_MPI_PERHOST=4"}},
      {"MPICH",
       "j-node-0-0.j:4\nj-node-0-1.j:4\n",
       {"HYDRA_HOST_FILE=/etc/mpi/hostfile", "HYDRA_LAUNCHER_EXTRA_ARGS=-o ConnectionAttempts=10"}},
      {"''",
       "j-node-0-0.j slots=4\nj-node-0-1.j slots=4\n",
       {"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames=true", "OMPI_MCA_orte_set_default_slots=4",
        "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10"}},
  };
  for (const Row& row : rows) {
    INFO(row.implementation);
    const Runtime runtime = mpi_runtime(
        mpi("runLauncherAsNode: false, mpiImplementation: " + std::string(row.implementation)));
    const Built result = built(job_with("trainer: {numNodes: 2, numProcPerNode: 4}"), runtime);
    CHECK(hostfile_of(result) == row.hostfile);
    CHECK(env_of(container_in(result, "launcher")) == row.env);
    CHECK(env_of(container_in(result, "node")).empty());
  }
}

TEST_CASE("an unknown implementation is refused by name", "[mpi]") {
  const auto errors = refused(job_with("{}"), mpi_runtime(mpi("mpiImplementation: LAM")));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].to_string().find("LAM") != std::string::npos);
  CHECK(errors[0].to_string().find("OpenMPI, Intel or MPICH") != std::string::npos);
}

TEST_CASE("a launcher that is a node is one of the nodes asked for", "[mpi]") {
  struct Row {
    const char* trainer;
    bool as_node;
    std::int32_t nodes;
    const char* hostfile;
  };
  const Row rows[] = {
      {"{numNodes: 3}", true, 2,
       "j-node-0-0.j slots=1\nj-node-0-1.j slots=1\nj-launcher-0-0.j slots=1\n"},
      {"{numNodes: 2}", true, 1, "j-node-0-0.j slots=1\nj-launcher-0-0.j slots=1\n"},
      {"{numNodes: 1}", true, 1, "j-node-0-0.j slots=1\nj-launcher-0-0.j slots=1\n"},
      {"{numNodes: 3}", false, 3,
       "j-node-0-0.j slots=1\nj-node-0-1.j slots=1\nj-node-0-2.j slots=1\n"},
      {"{}", true, 1, "j-node-0-0.j slots=1\nj-launcher-0-0.j slots=1\n"},
  };
  for (const Row& row : rows) {
    INFO(row.trainer << " " << row.as_node);
    const Built result = built(
        job_with("trainer: " + std::string(row.trainer)),
        mpi_runtime(mpi("runLauncherAsNode: " + std::string(row.as_node ? "true" : "false"))));
    CHECK(result.pod_sets.at(0).count == row.nodes);
    CHECK(result.pod_sets.at(1).count == 1);
    CHECK(hostfile_of(result) == row.hostfile);
  }
}

TEST_CASE("the hostfile honours the subdomain", "[mpi]") {
  Runtime runtime = mpi_runtime();
  runtime.spec.template_->spec->network = Network{{}, "hosts", {}, {}};
  CHECK(hostfile_of(built(job_with("{}"), runtime)) ==
        "j-node-0-0.hosts slots=1\nj-launcher-0-0.hosts slots=1\n");
}

TEST_CASE("slots come from the job, else from the runtime, else from the worker's devices",
          "[mpi]") {
  struct Row {
    const char* policy;
    const char* trainer;
    const char* slots;
  };
  const Row rows[] = {
      {"numProcPerNode: 1", "{}", "1"},
      {"numProcPerNode: 8", "{}", "8"},
      {"numProcPerNode: 8", "{numProcPerNode: 2}", "2"},
      {"numProcPerNode: 1", "{resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}", "4"},
      {"numProcPerNode: 2", "{resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}", "2"},
      {"numProcPerNode: 1", "{resourcesPerNode: {limits: {memory: 1Gi}}}", "1"},
      // The launcher alone gets these; the processes run in the workers.
      {"runLauncherAsNode: false", "{resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}", "1"},
  };
  for (const Row& row : rows) {
    INFO(row.policy << " " << row.trainer);
    const Built result =
        built(job_with("trainer: " + std::string(row.trainer)), mpi_runtime(mpi(row.policy)));
    CHECK(env_value(container_in(result, "launcher"), "OMPI_MCA_orte_set_default_slots") ==
          row.slots);
    CHECK(hostfile_of(result).find(" slots=" + std::string(row.slots) + "\n") != std::string::npos);
  }
}

Runtime labelled_runtime(bool is_launcher_labelled, bool are_workers_labelled, bool as_node) {
  Runtime runtime =
      mpi_runtime(mpi(as_node ? "runLauncherAsNode: true" : "runLauncherAsNode: false"));
  auto& jobs = runtime.spec.template_->spec->replicatedJobs;
  if (are_workers_labelled) jobs[0].template_["metadata"]["labels"].set(kAncestorLabel, "trainer");
  if (!is_launcher_labelled) jobs[1].template_["metadata"]["labels"].erase(kAncestorLabel);
  return runtime;
}

TEST_CASE("what reaches launcher and workers", "[mpi]") {
  const TrainJob job = job_with(
      "trainer: {image: 'mine:2', command: [mpirun], args: [a], env: [{name: A, value: '1'}], "
      "resourcesPerNode: {limits: {cpu: 3}}}");
  for (const bool launcher_labelled : {true, false})
    for (const bool workers_labelled : {true, false})
      for (const bool as_node : {true, false}) {
        INFO("labels " << launcher_labelled << workers_labelled << ", as node " << as_node);
        const Built result =
            built(job, labelled_runtime(launcher_labelled, workers_labelled, as_node));
        const bool reaches_workers = as_node || workers_labelled;
        // A launcher that is no node runs only mpirun, so it leaves the resources to the workers.
        const bool has_resources = as_node || launcher_labelled || !workers_labelled;
        const kube::Json& worker = container_in(result, "node");
        const kube::Json& launcher = container_in(result, "launcher");
        CHECK(strings(launcher.get_array("command")) == Words{"mpirun"});
        CHECK(strings(launcher.get_array("args")) == Words{"a"});
        CHECK(launcher.get_string("image") == "mine:2");
        CHECK(env_value(launcher, "A") == "1");
        CHECK((launcher.find_path({"resources", "limits", "cpu"}) != nullptr) == has_resources);
        CHECK(strings(worker.get_array("command")) == Words{"/usr/sbin/sshd"});  // never replaced
        CHECK(strings(worker.get_array("args")) == Words{"-De"});
        CHECK(worker.get_string("image") == (reaches_workers ? "mine:2" : "img:1"));
        CHECK(env_value(worker, "A") == (reaches_workers ? "1" : ""));
        CHECK((worker.find_path({"resources", "limits", "cpu"}) != nullptr) == reaches_workers);
        CHECK(result.pod_sets.at(1).count == 1);
      }
}

TEST_CASE("each field of spec.trainer has an effect or a warning, wherever the label is", "[mpi]") {
  struct Field {
    const char* path;
    const char* trainer;
    const char* marker;  // in what is created
  };
  const Field fields[] = {
      {"spec.trainer.image", "image: 'marker:7'", "marker:7"},
      {"spec.trainer.command", "command: [mpirun-marker]", "mpirun-marker"},
      {"spec.trainer.args", "args: [marker-arg]", "marker-arg"},
      {"spec.trainer.env", "env: [{name: MARKER, value: v}]", "MARKER"},
      {"spec.trainer.resourcesPerNode", "resourcesPerNode: {limits: {example.com/marker: 7}}",
       "example.com/marker"},
      {"spec.trainer.numNodes", "numNodes: 13", "j-node-0-11.j slots="},
      {"spec.trainer.numProcPerNode", "numProcPerNode: 17", "slots=17"},
  };
  for (const bool launcher_labelled : {true, false})
    for (const bool workers_labelled : {true, false})
      for (const bool as_node : {true, false})
        for (const Field& field : fields) {
          INFO(field.path << ", labels " << launcher_labelled << workers_labelled << ", as node "
                          << as_node);
          const Runtime runtime = labelled_runtime(launcher_labelled, workers_labelled, as_node);
          const TrainJob job = job_with(fmt::format("trainer: {{{}}}", field.trainer));
          const Built result = built(job, runtime);
          std::string created = kube::print_json(result.jobset);
          for (const DependentObject& one : result.dependents)
            created += kube::print_json(one.object);
          bool is_said = created.find(field.marker) != std::string::npos;
          for (const std::string& warning : result.warnings)
            is_said = is_said || warning.starts_with(field.path);
          CHECK(is_said);
        }
}

TEST_CASE("a JobSet whose launcher has nothing of the job stays as it was made", "[mpi]") {
  const Runtime runtime = labelled_runtime(false, true, true);
  const char* const trainers[] = {"{image: 'mine:2'}", "{command: [mpirun], args: [a]}",
                                  "{env: [{name: A, value: '1'}]}",
                                  "{resourcesPerNode: {limits: {cpu: 3}}}",
                                  "{command: [mpirun], env: [{name: A, value: '1'}], numNodes: 3}"};
  for (const char* trainer : trainers) {
    INFO(trainer);
    const TrainJob job = job_with(fmt::format("trainer: {}", trainer));
    const Built now = built(job, runtime);
    const auto again = [&](const kube::Json& stored) {
      return trainer::build(job, runtime, production(), nullptr, &stored).value();
    };
    CHECK(again(now.jobset).jobset == now.jobset);
    // An earlier version left the launcher to the runtime.
    Built earlier = now;
    const Built plain = built(job_with("{}"), runtime);
    const_cast<kube::Json&>(container_in(earlier, "launcher")) = container_in(plain, "launcher");
    CHECK(earlier.jobset != now.jobset);
    CHECK(again(earlier.jobset).jobset == earlier.jobset);
  }
}

TEST_CASE("the key pair is asked for, not made", "[mpi]") {
  const Built result = built(job_with("{}"), mpi_runtime());
  REQUIRE(result.dependents.size() == 2);
  const DependentObject& keys = result.dependents[1];
  CHECK(keys.generate == DependentObject::Generate::kSshKeyPair);
  CHECK(keys.mode == DependentObject::Mode::kCreateOnce);
  CHECK(keys.object.get_string("type") == "kubernetes.io/ssh-auth");
  CHECK(keys.object.get_bool("immutable"));
  CHECK(keys.object.find("data") == nullptr);
}

TEST_CASE("ssh accepts the private key of root, and of others by their group", "[mpi]") {
  struct Row {
    const char* path;
    std::int64_t mode;
  };
  // ssh refuses a key of its own user that a group may read; files of a Secret belong to root.
  for (const Row& row : {Row{"/root/.ssh", 0600}, Row{"/root", 0600},
                         Row{"/home/mpiuser/.ssh", 0640}, Row{"/rootless/.ssh", 0640}}) {
    INFO(row.path);
    const Built result =
        built(job_with("{}"), mpi_runtime(mpi("sshAuthMountPath: " + std::string(row.path))));
    for (const char* job : {"launcher", "node"}) {
      const auto& volumes = pod_in(result, job).find_path({"spec", "volumes"})->as_array();
      REQUIRE_FALSE(volumes.empty());
      REQUIRE(volumes[0].get_string("name") == "mpi-ssh-auth");
      const kube::Json& key = volumes[0].find("secret")->get_array("items")[0];
      CHECK(key.get_string("path") == "id_rsa");
      CHECK(key.get_int("mode") == row.mode);
    }
  }
}

TEST_CASE("MPI jobs that cannot run are refused", "[mpi]") {
  CHECK(paths_of(validate_trainjob(
            job_with("trainer: {numNodes: 2}"), nullptr,
            torch_runtime("mlPolicy: {torch: null, mpi: {runLauncherAsNode: true}}"))) ==
        Words{"spec.trainer.numNodes"});
  CHECK(paths_of(validate_trainjob(job_with("trainer: {env: [{name: I_MPI_PERHOST, value: '1'}]}"),
                                   nullptr, mpi_runtime(mpi("mpiImplementation: Intel")))) ==
        Words{"spec.trainer.env[0].name"});
  // A name that another implementation reserves is free.
  CHECK(validate_trainjob(job_with("trainer: {env: [{name: I_MPI_PERHOST, value: '1'}]}"), nullptr,
                          mpi_runtime())
            .empty());
}

TEST_CASE("a queue label on Intel MPI or MPICH is warned about", "[mpi]") {
  TrainJob job = job_with("{}");
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "q";
  CHECK(warn_trainjob(job, mpi_runtime()).empty());
  REQUIRE(warn_trainjob(job, mpi_runtime(mpi("mpiImplementation: MPICH"))).size() == 1);
  CHECK(warn_trainjob(job, mpi_runtime(mpi("mpiImplementation: MPICH")))[0].find("Kueue") !=
        std::string::npos);
}

TEST_CASE("a command that starts no processes on the other nodes is warned about", "[mpi]") {
  struct Row {
    const char* trainer;
    bool is_warned;
  };
  const Row rows[] = {
      {"{numNodes: 2}", false},
      {"{numNodes: 2, command: [mpirun, python, t.py]}", false},
      {"{numNodes: 2, command: [/usr/bin/mpiexec], args: [python, t.py]}", false},
      {"{numNodes: 2, command: [env, A=b, mlx.launch, t.py]}", false},
      {"{numNodes: 2, command: [bash, -c, 'mpirun python t.py']}", false},
      {"{numNodes: 1, command: [python, t.py]}", false},
      {"{numNodes: 2, command: [python, t.py]}", true},
      {"{numNodes: 1, numProcPerNode: 2, command: [python, t.py]}", true},
  };
  for (const Row& row : rows) {
    INFO(row.trainer);
    const auto warnings =
        warn_trainjob(job_with("trainer: " + std::string(row.trainer)), mpi_runtime());
    REQUIRE(warnings.size() == (row.is_warned ? 1U : 0U));
    if (row.is_warned)
      CHECK(
          warnings[0].find("spec.trainer.command: \"python\" is not mpirun, so one process runs in "
                           "the launcher") == 0);
  }
}

}  // namespace
}  // namespace trainer::test
