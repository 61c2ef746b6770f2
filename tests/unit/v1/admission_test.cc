// Rows AD1 to AD17 of the acceptance checklist. AD18, a changed queue, is the schema's rule: the
// recorded case queue-immutable.
#include <fmt/format.h>

#include "api/kinds/kinds.hh"
#include "api/schema/structural_schema.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/admission/v1job.hh"
#include "runtimes/v1/validate.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

namespace {

std::string errors_of(const Json& object) {
  const Framework& framework = framework_of(object.get_string("kind"));
  return kube::to_string(validate_create(framework, read(object)).errors);
}

const char* roles_of(std::string_view kind) {
  if (kind == "JAXJob") return "Worker";
  return kind == "MPIJob"  ? "Launcher Worker*2"
         : kind == "TFJob" ? "Chief Worker"
                           : "Master Worker";
}

}  // namespace

TEST_CASE("AD1 to AD5, AD7: rules of all kinds") {
  for (const Framework* framework : frameworks()) {
    const std::string& kind = framework->resource.kind;
    const auto with = [&](std::string_view more, std::string_view name = "p") {
      return errors_of(make_job(kind, roles_of(kind), more, name));
    };
    INFO(kind);
    const std::string worker =
        fmt::format("spec.{}[Worker].template.spec.containers", framework->replica_specs);
    CHECK(with("") == "");
    CHECK(with("roles: {Worker: {template: {spec: {containers: []}}}}") ==
          worker + ": Required value: must be specified");
    CHECK(with("roles: {Worker: {template: {spec: null}}}") ==
          worker + ": Required value: must be specified");
    CHECK(with(fmt::format(
              "roles: {{Worker: {{template: {{spec: {{containers: [{{name: {}}}]}}}}}}}}",
              framework->container.empty() ? "mpi" : framework->container)) ==
          worker + "[0].image: Required value: must be required");
    CHECK(
        with("runPolicy: {managedBy: a.b/c}").find("spec.runPolicy.managedBy: Unsupported value") ==
        0);
    CHECK(with("runPolicy: {managedBy: ''}").find("spec.runPolicy.managedBy: Unsupported value") ==
          0);
    CHECK(with("runPolicy: {managedBy: kueue.x-k8s.io/multikueue}") == "");
    if (!framework->has_services) continue;
    CHECK(with("", "1abc").find("metadata.name: Invalid value: \"1abc\": should match:") == 0);
    CHECK(with("roles: {Worker: {template: {spec: {containers: [{name: other, image: i}]}}}}") ==
          fmt::format("{}: Required value: must have at least one container with name {}", worker,
                      framework->container));
  }
}

TEST_CASE("more pods than a job may have are refused, whatever their roles") {
  CHECK(errors_of(make_job("PyTorchJob", "Worker*10000")) == "");
  CHECK(errors_of(make_job("PyTorchJob", "Master Worker*10000")) ==
        "spec.pytorchReplicaSpecs: Invalid value: 10001: pods in all replicas: at most 10000 are "
        "possible; set fewer, or make several jobs");
  CHECK(errors_of(make_job("TFJob", "PS*2147483647 Worker*2147483647"))
            .find("spec.tfReplicaSpecs: Invalid value: 4294967294:") == 0);
}

TEST_CASE("AD6: without roles the schema refuses; an empty map gets nothing at all") {
  Json job = make_job("PyTorchJob", "");
  CHECK(errors_of(job) == "");
  World world;
  CHECK(world.apply(job) == 201);
  world.settle();
  CHECK(world.writes == 0);
}

// If there is no spec at all, the schema has nothing to check.
TEST_CASE("AD6: a job without a spec is refused") {
  for (const Framework* framework : frameworks()) {
    INFO(framework->resource.kind);
    trainer::AdmissionRequest request;
    request.operation = "CREATE";
    request.object = make_job(framework->resource.kind, roles_of(framework->resource.kind));
    CHECK(trainer::validate_v1job(request, *framework).is_allowed);
    request.object.erase("spec");
    const auto answer = trainer::validate_v1job(request, *framework);
    CHECK(!answer.is_allowed);
    if (!framework->has_webhook) continue;
    CHECK(answer.message.find(fmt::format("spec.{}: Required value", framework->replica_specs)) !=
          std::string::npos);
  }
}

TEST_CASE("AD8: managedBy does not change") {
  for (const char* kind : {"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"}) {
    World world(make_job(kind, roles_of(kind)));
    const std::string key = std::string(kind) + "/p";
    CHECK(world.patch(key, yaml("spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}")) ==
          403);
    CHECK(world.patch(key, yaml("spec: {runPolicy: {suspend: true}}")) == 200);
  }
}

TEST_CASE("what is wrong with the stored job already does not keep it from being suspended") {
  for (const char* kind : {"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"}) {
    INFO(kind);
    World world(make_job(kind, roles_of(kind)));
    const std::string key = std::string(kind) + "/p";
    const std::string specs(framework_of(kind).replica_specs);
    world.objects[key]["spec"][specs]["Worker"].set("replicas", 20'000);  // by `scale`
    world.settle();
    CHECK(world.patch(key, yaml("metadata: {labels: {a: b}}")) == 200);
    CHECK(world.patch(key, yaml(fmt::format("spec: {{{}: {{Worker: {{replicas: 30000}}}}}}",
                                            specs))) == 403);
    CHECK(world.patch(key, yaml("spec: {runPolicy: {suspend: true}}")) == 200);
    world.settle();
    CHECK(world.conditions() == "Created Suspended");
    CHECK(world.names("Pod").empty());
    CHECK(world.patch(key, yaml(fmt::format("spec: {{{}: {{Worker: {{replicas: 2}}}}}}", specs))) ==
          200);
  }
}

TEST_CASE("AD9 to AD16: rules of one kind") {
  struct Row {
    const char* name;
    const char* kind;
    const char* roles;
    const char* more;
    const char* expected;
  };
  for (const Row& row : {
           Row{"AD9", "PyTorchJob", "Master*2", "",
               "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1"},
           Row{"AD9", "PyTorchJob", "Master", "roles: {Master: {replicas: null}}",
               "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1"},
           Row{"AD11", "PyTorchJob", "Worker",
               "{nprocPerNode: '2', elasticPolicy: {nProcPerNode: 2}}",
               "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with "
               "spec.nprocPerNode"},
           Row{"AD12", "PyTorchJob", "Master", "elasticPolicy: {}",
               "spec.pytorchReplicaSpecs[Worker]: Required value: must be configured if elastic "
               "policy is used"},
           Row{"AD13", "PyTorchJob", "Worker*0", "",
               "spec.pytorchReplicaSpecs[Worker].replicas: Forbidden: must be at least 1"},
           Row{"roles", "PyTorchJob", "worker", "",
               "spec.pytorchReplicaSpecs[worker]: Unsupported value: \"worker\": supported values: "
               "\"Master\", \"Worker\""},
           Row{"roles", "TFJob", "worker", "", ""},
           Row{"AD14", "TFJob", "Chief Master", "",
               "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role"},
           Row{"AD15", "XGBoostJob", "Master*2", "",
               "spec.xgbReplicaSpecs[Master].replicas: Forbidden: must be 1"},
           Row{"AD16", "XGBoostJob", "Worker", "",
               "spec.xgbReplicaSpecs[Master]: Required value: must be present"},
           Row{"zero", "PaddleJob", "Worker*0", "", ""},
       }) {
    INFO(row.name << " " << row.kind << " " << row.roles);
    CHECK(errors_of(make_job(row.kind, row.roles, row.more)) == row.expected);
  }
}

TEST_CASE("AD10: the deprecated nProcPerNode and runPolicy.queue only warn") {
  trainer::AdmissionRequest request;
  request.operation = "CREATE";
  request.object = make_job("PyTorchJob", "Worker", "elasticPolicy: {nProcPerNode: 2}");
  auto answer = trainer::validate_v1job(request, framework_of("PyTorchJob"));
  CHECK(answer.is_allowed);
  CHECK(answer.warnings == std::vector<std::string>{"spec.elasticPolicy.nProcPerNode is "
                                                    "deprecated, use spec.nprocPerNode instead"});
  request.object = make_job("PyTorchJob", "Worker", "runPolicy: {queue: a}");
  CHECK(trainer::validate_v1job(request, framework_of("PyTorchJob")).warnings.size() == 1);
}

TEST_CASE("what is admitted and will not do what it says is warned about") {
  struct Row {
    const char* kind;
    const char* roles;
    const char* more;
    const char* warning;  // its beginning; "" for none
  };
  const Row rows[] = {
      {"PyTorchJob", "Master Worker", "", ""},
      {"PyTorchJob", "Master Worker", "runPolicy: {cleanPodPolicy: all}",
       "spec.runPolicy.cleanPodPolicy: \"all\" counts as All"},
      {"PyTorchJob", "Master Worker", "runPolicy: {activeDeadlineSeconds: -3}",
       "spec.runPolicy.activeDeadlineSeconds: -3 is less than 0"},
      {"PyTorchJob", "Master Worker", "runPolicy: {schedulingPolicy: {minAvailable: 3}}",
       "spec.runPolicy.schedulingPolicy.minAvailable: a gang scheduler waits for 3 pods, and this "
       "job has 2"},
      {"TFJob", "PS Worker*-1", "", "spec.tfReplicaSpecs[Worker].replicas: -1 counts as 0"},
      {"PyTorchJob", "Master Worker", "roles: {Worker: {restartPolicy: Sometimes}}",
       "the API server will refuse pods of this job: "
       "spec.pytorchReplicaSpecs[Worker].restartPolicy: Unsupported value: \"Sometimes\""},
      {"PyTorchJob", "Master Worker", "roles: {Worker: {template: {metadata: {labels: {a: b c}}}}}",
       "the API server will refuse pods of this job: "
       "spec.pytorchReplicaSpecs[Worker].template.metadata.labels: Invalid value: \"b c\""},
      {"JAXJob", "Worker", "roles: {Worker: {template: {spec: {hostNetwork: true}}}}",
       "spec.jaxReplicaSpecs[Worker].template.spec.hostNetwork: without dnsPolicy"},
      {"PyTorchJob", "Master Worker",
       "roles: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, env: [{name: "
       "RANK, value: '7'}, {name: LOGLEVEL, value: DEBUG}]}]}}}}",
       "spec.pytorchReplicaSpecs[Worker].template.spec.containers[0].env: RANK has no effect"},
      {"XGBoostJob", "Master",
       "roles: {Master: {template: {spec: {containers: [{name: xgboost, image: i, command: [python "
       "t.py]}]}}}}",
       "spec.xgbReplicaSpecs[Master].template.spec.containers[0].command[0]: \"python t.py\" is"},
      {"PyTorchJob", "Worker*2",
       "roles: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, command: "
       "[python, t.py]}]}}}}",
       "spec.pytorchReplicaSpecs[Worker].template.spec.containers[pytorch].command: Python is "
       "started without torchrun, so each of the 2 pods runs a training of its own"},
      {"PyTorchJob", "Master Worker",
       "nprocPerNode: '4', roles: {Master: {template: {spec: {containers: [{name: pytorch, image: "
       "i, command: [python, t.py]}]}}}}",
       "spec.pytorchReplicaSpecs[Master].template.spec.containers[pytorch].command: Python is "
       "started without torchrun, so one process a pod runs, and with spec.nprocPerNode WORLD_SIZE "
       "is 8"},
      {"PyTorchJob", "Master Worker",
       "nprocPerNode: '4', roles: {Master: {template: {spec: {containers: [{name: pytorch, image: "
       "i, command: [torchrun, t.py]}]}}}}",
       ""},
      {"PyTorchJob", "Worker", "nprocPerNode: four",
       "spec.nprocPerNode: \"four\" is no number and no word that torchrun knows"},
      {"PyTorchJob", "Worker*2", "elasticPolicy: {minReplicas: 1, maxReplicas: 3}", ""},
      {"PyTorchJob", "Worker*2", "elasticPolicy: {minReplicas: 4, maxReplicas: 2}",
       "spec.elasticPolicy.minReplicas: 4 is more than maxReplicas 2"},
      {"PyTorchJob", "Worker*2", "elasticPolicy: {minReplicas: 4, maxReplicas: 8}",
       "spec.elasticPolicy.minReplicas: torchrun waits for 4 pods, and there are 2"},
      {"PyTorchJob", "Worker*4", "elasticPolicy: {minReplicas: 1, maxReplicas: 3}",
       "spec.elasticPolicy.maxReplicas: 1 of 4 workers find no place"},
      {"PyTorchJob", "Worker*2", "elasticPolicy: {minReplicas: 1, maxReplicas: 2, rdzvPort: 99999}",
       "spec.elasticPolicy.rdzvPort: 99999 is no port"},
      {"PyTorchJob", "Master Worker",
       "roles: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, command: "
       "[torchrun, --nnodes=4, t.py]}]}}}}",
       "spec.pytorchReplicaSpecs[Worker].template.spec.containers[pytorch].command: torchrun waits "
       "for 4 pods as --nnodes says, and the job has 2"},
      {"PyTorchJob", "Master Worker",
       "roles: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, command: "
       "[torchrun], args: [--nnodes, '2', t.py, --nnodes=4]}]}}}}",
       ""},
      {"PyTorchJob", "Worker*2",
       "elasticPolicy: {minReplicas: 1, maxReplicas: 4}, roles: {Worker: {template: {spec: "
       "{containers: [{name: pytorch, image: i, command: [/usr/local/bin/torchrun, --nnodes=2, "
       "t.py]}]}}}}",
       "spec.pytorchReplicaSpecs[Worker].template.spec.containers[pytorch].command: "
       "--nnodes=2 is the size of the training, so minReplicas and maxReplicas of"},
      {"PyTorchJob", "Worker*2",
       "elasticPolicy: {minReplicas: 1, maxReplicas: 4}, roles: {Worker: {template: {spec: "
       "{containers: [{name: pytorch, image: i, command: [torchrun, '--nnodes=1:4', t.py]}]}}}}",
       ""},
      {"PyTorchJob", "Worker*2",
       "elasticPolicy: {minReplicas: 1, maxReplicas: 4, metrics: [{type: Resource, resource: "
       "{name: cpu, target: {type: Utilization, averageUtilization: 90}}}]}",
       "spec.elasticPolicy.metrics[0].resource.name: container pytorch of the workers requests no "
       "cpu"},
      {"PyTorchJob", "Worker*2",
       "elasticPolicy: {minReplicas: 1, maxReplicas: 4, metrics: [{type: Resource, resource: "
       "{name: cpu, target: {type: Utilization, averageUtilization: 90}}}]}, roles: {Worker: "
       "{template: {spec: {containers: [{name: pytorch, image: i, resources: {limits: {cpu: "
       "1}}}]}}}}",
       ""},
      {"TFJob", "Worker", "roles: {Worker: {template: {spec: {restartPolicy: OnFailure}}}}",
       "spec.tfReplicaSpecs[Worker].template.spec.restartPolicy: OnFailure has no effect, and pods "
       "have Never"},
      {"PyTorchJob", "Master Worker",
       "roles: {Worker: {template: {spec: {restartPolicy: OnFailure}}}}", ""},
      {"XGBoostJob", "Master Worker",
       "roles: {Worker: {restartPolicy: ExitCode, template: {spec: {restartPolicy: Never}}}}", ""},
      {"TFJob", "Worker", "successPolicy: AllWorker", "spec.successPolicy: \"AllWorker\" counts"},
      {"TFJob", "Worker", "successPolicy: AllWorkers", ""},
  };
  for (const Row& row : rows) {
    INFO(row.kind << " " << row.roles << " " << row.more);
    trainer::AdmissionRequest request;
    request.operation = "CREATE";
    request.object =
        make_job(row.kind, row.roles, *row.more == '\0' ? "" : fmt::format("{{{}}}", row.more));
    const auto answer = trainer::validate_v1job(request, framework_of(row.kind));
    CHECK(answer.is_allowed);
    REQUIRE(answer.warnings.size() == (*row.warning == '\0' ? 0U : 1U));
    if (!answer.warnings.empty())
      CHECK_THAT(answer.warnings[0], kube::test::starts_with(row.warning));
  }
}

TEST_CASE("AD17: an invalid MPIJob gets an event, and nothing else") {
  for (const auto& [roles, more, why] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"Launcher", "roles: {Launcher: {template: {spec: {containers: []}}}}",
            "must be specified"},
           {"Launcher", "roles: {Launcher: {template: {spec: {containers: [{name: a}]}}}}",
            "[0].image: Required value"},
           {"Launcher", "roles: {Launcher: {template: {spec: {containers: [{image: a}]}}}}",
            "[0].name: Required value"},
           {"Launcher*2", "", "mpiReplicaSpecs[Launcher].replicas: Forbidden: must be 1"},
           {"Worker", "", "mpiReplicaSpecs[Launcher]: Required value: must be present"},
           {"Launcher Other", "", "mpiReplicaSpecs[Other]: Unsupported value"}}) {
    World world(make_job("MPIJob", roles, more));
    INFO(roles << " " << more);
    CHECK(world.writes == 0);
    REQUIRE(world.events.size() == 1);
    CHECK(world.has_event("Warning MPIJobFailedValidation: MPIJob failed validation because "));
    CHECK(world.has_event(why));
    world.settle();
    CHECK(world.events.size() == 1);
  }
}

TEST_CASE("names whose pods would be too long are refused, with the length that fits") {
  const std::string name(54, 'a');
  CHECK(errors_of(make_job("PyTorchJob", "Worker", "", name)) == "");  // a...a-worker-0: 63
  CHECK(errors_of(make_job("PyTorchJob", "Worker*11", "", name))
            .find("must be no more than 53 characters: the pod and Service " + name +
                  "-worker-10 would have a name of 64, and 63 fit") != std::string::npos);
  CHECK(errors_of(make_job("PyTorchJob", "Worker", "elasticPolicy: {maxReplicas: 11}", name))
            .find("must be no more than 53 characters") != std::string::npos);
}

TEST_CASE("minResources hold quantities, of any size") {
  for (const Framework* framework : frameworks()) {
    const trainer::ApiKind kind = api_kind(*framework);
    const trainer::wire::Schema schema = kind.versions.front().make_schema();
    for (const auto& [amount, is_taken] : std::vector<std::pair<const char*, bool>>{
             {"8589934592", true}, {"1.5Gi", true}, {"'2'", true}, {"abc", false}, {"[]", false}}) {
      INFO(kind.resource.kind << " " << amount);
      const Json job = make_job(
          kind.resource.kind, roles_of(kind.resource.kind),
          fmt::format("runPolicy: {{schedulingPolicy: {{minResources: {{memory: {}}}}}}}", amount));
      CHECK(trainer::check_schema(job, schema).empty() == is_taken);
      if (is_taken) CHECK(errors_of(job) == "");
    }
  }
}

TEST_CASE("the status of a job of an older operator has no unknown field") {
  for (const Framework* framework : frameworks()) {
    const trainer::ApiKind kind = api_kind(*framework);
    INFO(kind.resource.kind);
    const trainer::wire::Schema schema = kind.versions.front().make_schema();
    Json job = make_job(kind.resource.kind, roles_of(kind.resource.kind));
    job.set("status", yaml("replicaStatuses: {Worker: {labelSelector: {matchLabels: {a: b}}, "
                           "succeeded: 2}}"));
    CHECK(trainer::check_schema(job, schema).empty());
    CHECK(trainer::unknown_fields(job, schema).empty());
  }
}
