#include "controller/config/configuration.hh"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "controller/kinds/registry.hh"
#include "kube/model/names.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"

using namespace trainer;
using namespace std::chrono_literals;

namespace {

const std::string kHead = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n";

std::string message_of(const std::string& yaml) {
  const auto parsed = parse_configuration(yaml);
  return parsed ? "" : parsed.error().message;
}

}  // namespace

TEST_CASE("an absent file and an empty Configuration mean the defaults") {
  for (const std::string& text : {std::string(), kHead}) {
    const auto parsed = parse_configuration(text);
    REQUIRE(parsed);
    const Configuration& c = parsed->configuration;
    CHECK(c.webhook.port == 9443);
    CHECK_FALSE(c.webhook.is_port_set);
    CHECK(c.leaderElection.leaderElect);
    CHECK(c.leaderElection.leaseDuration == 15s);
    CHECK(c.leaderElection.resourceName == "trainer.kubeflow.org");
    CHECK(c.metrics.bindAddress == ":8443");
    CHECK(c.metrics.secureServing);
    CHECK_FALSE(c.metrics.auth.enabled);
    CHECK(c.health.healthProbeBindAddress == ":8081");
    CHECK(c.certManagement.enable);
    CHECK(c.certManagement.webhookSecretName == "kubeflow-trainer-webhook-cert");
    CHECK_FALSE(c.clientConnection.qps);
    CHECK(c.statusServer.port == 10443);
    CHECK_FALSE(c.statusServer.burst);
    CHECK(c.tls.minVersion == "1.2");
    CHECK(c.jobsetController.mode == JobSetControllerMode::kAuto);
    CHECK(c.jobsetController.upstreamNamespaces.empty());
    CHECK_FALSE(c.removeLegacyFinalizers);
    CHECK_FALSE(c.marksFinishedJobs);
    CHECK_FALSE(c.namespaced);
    CHECK(c.featureGates == FeatureGates{});
    CHECK(parsed->warnings.empty());
  }
}

TEST_CASE("every field of the file is read") {
  const auto parsed = parse_configuration(kHead + R"(
webhook: {port: 19443, host: 10.0.0.1, exclusivePlacement: true}
leaderElection:
  leaderElect: false
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 500ms
  resourceLock: ""
  resourceName: mine
  resourceNamespace: elsewhere
metrics:
  bindAddress: "0"
  secureServing: false
  auth: {enabled: false}
health: {healthProbeBindAddress: "127.0.0.1:1", readinessEndpointName: /readyz, livenessEndpointName: healthz}
controller:
  groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 7}
certManagement: {enable: false, webhookServiceName: svc, webhookSecretName: sec.ret}
clientConnection: {qps: 12.5, burst: 3}
statusServer: {port: 1, qps: 0, burst: 0}
featureGates: {TrainJobStatus: true}
tls: {minVersion: "1.3", nextProtos: [http/1.1]}
expander: {mode: share, upstreamNamespaces: [a]}
clusterDomain: example.org
devices: {counted: [example.com/npu, "example.com/slice-*"], ignored: [example.com/gpu-hours]}
removeLegacyFinalizers: true
marksFinishedJobs: true
namespaced: true
)");
  REQUIRE(parsed);
  const Configuration& c = parsed->configuration;
  CHECK(c.webhook.port == 19443);
  CHECK(c.webhook.is_port_set);
  CHECK(c.webhook.host == "10.0.0.1");
  CHECK(c.webhook.exclusivePlacement);
  CHECK_FALSE(c.leaderElection.leaderElect);
  CHECK(c.leaderElection.leaseDuration == 30s);
  CHECK(c.leaderElection.renewDeadline == 20s);
  CHECK(c.leaderElection.retryPeriod == 500ms);
  CHECK(c.leaderElection.resourceName == "mine");
  CHECK(c.leaderElection.resourceNamespace == "elsewhere");
  CHECK(c.metrics.bindAddress == "0");
  CHECK_FALSE(c.metrics.secureServing);
  CHECK(c.health.healthProbeBindAddress == "127.0.0.1:1");
  CHECK(c.concurrency_of("TrainJob.trainer.kubeflow.org", 5) == 7);
  CHECK(c.concurrency_of("JobSet.jobset.x-k8s.io", 5) == 5);
  CHECK_FALSE(c.certManagement.enable);
  CHECK(c.certManagement.webhookServiceName == "svc");
  CHECK(c.certManagement.webhookSecretName == "sec.ret");
  CHECK(c.clientConnection.qps == 12.5);
  CHECK(c.clientConnection.burst == 3);
  CHECK(c.statusServer.port == 1);
  CHECK(c.statusServer.qps == 0);
  CHECK(c.statusServer.burst == 0);
  CHECK(c.featureGates.TrainJobStatus);
  CHECK(c.tls.minVersion == "1.3");
  CHECK(c.jobsetController.mode == JobSetControllerMode::kShare);
  CHECK(c.jobsetController.upstreamNamespaces == std::vector<std::string>{"a"});
  CHECK(c.clusterDomain == "example.org");
  CHECK(c.devices.counted == std::vector<std::string>{"example.com/npu", "example.com/slice-*"});
  CHECK(c.devices.ignored == std::vector<std::string>{"example.com/gpu-hours"});
  CHECK(c.removeLegacyFinalizers);
  CHECK(c.marksFinishedJobs);
  CHECK(c.namespaced);
  CHECK(parsed->warnings.empty());
}

TEST_CASE("names of devices are those of extended resources") {
  const auto parsed = parse_configuration(kHead + R"(
devices: {counted: [cpu, "example.com/a b", example.com/ok], ignored: ["*"]}
)");
  REQUIRE_FALSE(parsed);
  const std::string& message = parsed.error().message;
  CHECK(message.find("devices.counted[0]: Invalid value: \"cpu\": must be the name of an extended "
                     "resource, such as example.com/device") != std::string::npos);
  CHECK(message.find("devices.counted[1]: ") != std::string::npos);
  CHECK(message.find("devices.counted[2]") == std::string::npos);
  CHECK(message.find("devices.ignored[0]: ") != std::string::npos);
}

TEST_CASE("the configuration that upstream ships is read without a warning") {
  const auto parsed = parse_configuration(kHead + R"(
webhook:
  port: 9443
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
clientConnection:
  qps: 50
  burst: 100
)");
  REQUIRE(parsed);
  CHECK(parsed->warnings.empty());
  CHECK(concurrency_warnings(parsed->configuration, full_registry()).empty());
  CHECK(parsed->configuration.clientConnection.qps == 50.0);
}

TEST_CASE("refusals name the path, the value and what to write") {
  struct Case {
    const char* yaml;
    std::string message;
  };
  const Case cases[] = {
      {"webhook: {port: 0}", "webhook.port: Invalid value: 0: must be between 1 and 65535"},
      {"statusServer: {port: 65536}",
       "statusServer.port: Invalid value: 65536: must be between 1 and 65535"},
      {"clientConnection: {qps: -1}",
       "clientConnection.qps: Invalid value: -1: must be greater than or equal to 0"},
      {"statusServer: {burst: -1}",
       "statusServer.burst: Invalid value: -1: must be greater than or equal to 0"},
      {"controller: {groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 0}}",
       "controller.groupKindConcurrency[TrainJob.trainer.kubeflow.org]: Invalid value: 0: must be "
       "greater than 0"},
      {"webhook: {ports: 1}",
       "webhook.ports: Forbidden: there is no such field: choose from port, host, "
       "exclusivePlacement, clientCAFile"},
      {"metrics: {auth: {enable: true}}",
       "metrics.auth.enable: Forbidden: there is no such field: choose from enabled"},
      {"metrics: {auth: {enabled: true}, secureServing: false}",
       "metrics.auth.enabled: Invalid value: true: needs metrics.secureServing: true, or tokens "
       "would be sent without encryption"},
      {"health: {readinessEndpointName: 7}",
       "health.readinessEndpointName: Invalid value: 7: must be a string: put it in quotes"},
      {"expander: {upstreamNamespaces: [jobset-system, \"\"]}",
       "expander.upstreamNamespaces[1]: Invalid value: \"\": " + kube::check_dns1123_label("")},
      {"webhook: [1]", "webhook: Invalid value: [1]: must be an object, not array"},
      {"webhook: {port: \"9443\"}",
       "webhook.port: Invalid value: \"9443\": must be a whole number of 32 bits"},
      {"webhook: {port: 4294967297}",
       "webhook.port: Invalid value: 4294967297: must be a whole number of 32 bits"},
      {"metrics: {bindAddress: \"8443\"}",
       "metrics.bindAddress: Invalid value: \"8443\": must be \"HOST:PORT\", \":PORT\", or \"0\" "
       "for no server"},
      {"leaderElection: {leaseDuration: 15}",
       "leaderElection.leaseDuration: Invalid value: 15: must be a duration such as \"15s\" or "
       "\"1m30s\""},
      {"leaderElection: {leaseDuration: 5s}",
       "leaderElection.leaseDuration: Invalid value: \"5000ms\": must be longer than renewDeadline "
       "(10000ms), and "
       "that longer than retryPeriod (2000ms)"},
      {"leaderElection: {resourceLock: endpoints}",
       "leaderElection.resourceLock: Invalid value: \"endpoints\": only \"leases\" is supported: "
       "leave the field out"},
      {"expander: {mode: Both}",
       "expander.mode: Invalid value: \"Both\": must be Auto, Own, Share or Off"},
      {"featureGates: {TrainJobStatus: \"yes\"}",
       "featureGates[TrainJobStatus]: Invalid value: \"yes\": must be true or false"},
      {"tls: {cipherSuites: [1]}",
       "tls.cipherSuites: Invalid value: [1]: must be a list of strings"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.yaml);
    CHECK(message_of(kHead + c.yaml) == "invalid configuration: " + c.message);
  }
}

TEST_CASE("all errors are reported at once") {
  CHECK(message_of(kHead + "webhook: {port: 0}\nstatusServer: {port: 0}") ==
        "invalid configuration: [webhook.port: Invalid value: 0: must be between 1 and 65535, "
        "statusServer.port: Invalid value: 0: must be between 1 and 65535]");
}

TEST_CASE("another kind of file is refused") {
  CHECK(message_of("apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n") ==
        "invalid configuration: apiVersion: Invalid value: \"config.jobset.x-k8s.io/v1alpha1\": "
        "must be "
        "\"config.trainer.kubeflow.org/v1alpha1\"");
  CHECK_FALSE(parse_configuration("[]"));
  CHECK_FALSE(parse_configuration("just text"));
  CHECK_FALSE(parse_configuration("a: [1"));
}

TEST_CASE("a duplicate field is refused") {
  const auto parsed = parse_configuration(kHead + "webhook: {port: 1, port: 2}");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == kube::ErrorCode::kParse);
}

TEST_CASE("settings that are accepted but have no effect are warned about") {
  const auto parsed = parse_configuration(kHead + R"(
tls: {minVersion: "1.1", nextProtos: [h2, http/1.1]}
)");
  REQUIRE(parsed);
  CHECK(parsed->warnings.size() == 2);
  CHECK(parsed->configuration.tls.minVersion == "1.2");
}

TEST_CASE("a number of workers for a kind that is not registered is warned about") {
  const auto parsed = parse_configuration(kHead + R"(
controller: {groupKindConcurrency: {Pod: 3, JobSet.jobset.x-k8s.io: 3, PyTorchJob.kubeflow.org: 3}}
)");
  REQUIRE(parsed);
  CHECK(parsed->warnings.empty());
  CHECK(concurrency_warnings(parsed->configuration, full_registry()) ==
        std::vector<std::string>{
            "controller.groupKindConcurrency[Pod]: nothing of this kind is reconciled here; the "
            "setting has no effect"});
}

TEST_CASE("cipher suites have Go's names, and those of TLS 1.3 alone leave no TLS 1.2") {
  const auto tls_of = [](const std::string& suites) {
    const auto parsed = parse_configuration(kHead + "tls: {cipherSuites: [" + suites + "]}");
    REQUIRE(parsed);
    return parsed->configuration.tls;
  };
  const std::string strong = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
  CHECK(tls_of(strong).cipherSuites == std::vector<std::string>{"ECDHE-ECDSA-AES256-GCM-SHA384"});
  CHECK(tls_of(strong + ", TLS_AES_128_GCM_SHA256").minVersion == "1.2");
  CHECK(tls_of("TLS_AES_128_GCM_SHA256").minVersion == "1.3");
  CHECK(tls_of("TLS_UNKNOWN").cipherSuites.empty());
  CHECK(tls_of("TLS_UNKNOWN").minVersion == "1.2");
}

TEST_CASE("a warning names the path, the value and what applies instead") {
  struct Case {
    const char* yaml;
    const char* warning;
  };
  const Case cases[] = {
      {"health: {readinessEndpointName: ready}",
       "health.readinessEndpointName: \"ready\" has no effect: the endpoint is /readyz, let "
       "probes ask for that"},
      {"health: {livenessEndpointName: /live}",
       "health.livenessEndpointName: \"/live\" has no effect: the endpoint is /healthz, let "
       "probes ask for that"},
      {"tls: {cipherSuites: [TLS_UNKNOWN]}",
       "tls.cipherSuites: \"TLS_UNKNOWN\" is not known here; it is left out"},
      {"tls: {cipherSuites: [TLS_RSA_WITH_AES_128_CBC_SHA]}",
       "tls.cipherSuites: \"TLS_RSA_WITH_AES_128_CBC_SHA\" is not secure"},
      {"statusServer: {burst: 3}",
       "statusServer.burst: 3 has no effect without statusServer.qps, for there is no limit then"},
      {"clientConnection: {qps: 0, burst: 3}",
       "clientConnection.burst: 3 has no effect without clientConnection.qps, for there is no "
       "limit then"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.yaml);
    const auto parsed = parse_configuration(kHead + c.yaml);
    REQUIRE(parsed);
    CHECK(parsed->warnings == std::vector<std::string>{c.warning});
  }
}

TEST_CASE("a CA of clients that is missing, or has no certificate, is refused") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("trainer-client-ca-" + std::to_string(::getpid()) + ".pem");
  ControllerOptions options;
  options.webhook_client_ca = path.string();
  CHECK_THAT(load_configuration(options).error().message,
             Catch::Contains("--webhook-client-ca " + path.string()));
  std::ofstream(path) << "\n";
  CHECK_FALSE(load_configuration(options));
  std::ofstream(path) << "-----BEGIN CERTIFICATE-----\n";
  const auto loaded = load_configuration(options);
  REQUIRE(loaded);
  CHECK(loaded->configuration.webhook.client_ca_pem == "-----BEGIN CERTIFICATE-----\n");
  std::filesystem::remove(path);
}

TEST_CASE("the flags win over the file") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("trainer-configuration-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << kHead << "expander: {mode: Own}\nfeatureGates: {TrainJobStatus: true}\n";
  ControllerOptions options;
  options.config_file = path.string();
  REQUIRE(load_configuration(options));
  CHECK(load_configuration(options)->configuration.jobsetController.mode ==
        JobSetControllerMode::kOwn);

  options.jobset_controller_mode = JobSetControllerMode::kOff;
  options.feature_gates = "TrainJobStatus=false";
  options.health_address = ":1";
  options.metrics_address = "0";
  const auto loaded = load_configuration(options);
  REQUIRE(loaded);
  CHECK(loaded->configuration.jobsetController.mode == JobSetControllerMode::kOff);
  CHECK_FALSE(loaded->configuration.featureGates.TrainJobStatus);
  CHECK(loaded->configuration.health.healthProbeBindAddress == ":1");
  CHECK(loaded->configuration.metrics.bindAddress == "0");

  options.health_address = "nowhere";
  CHECK(load_configuration(options).error().message ==
        "--health-address: \"nowhere\" is no address: write HOST:PORT, :PORT, or 0 for none");
  std::filesystem::remove(path);
  CHECK(load_configuration(options).error().message ==
        "--config " + path.string() + ": the file cannot be read");
}

TEST_CASE("V1 jobs are off unless the file or a flag names kinds") {
  const auto kinds_of = [](const Configuration& configuration) {
    std::string kinds;
    for (const v1::Framework* each : configuration.trainingOperator.schemes)
      kinds += each->resource.kind + " ";
    return kinds;
  };
  const std::string all = "PyTorchJob TFJob XGBoostJob PaddleJob JAXJob MPIJob ";
  struct Row {
    const char* yaml;
    std::string kinds;
  };
  const Row rows[] = {
      {"", ""},
      {"trainingOperator: {gangSchedulerName: volcano}", ""},
      {"trainingOperator: {schemes: [tfjob, PyTorchJob, tfjob]}", "TFJob PyTorchJob "},
      {"trainingOperator: {schemes: [all], only: true}", all}};
  for (const Row& row : rows) {
    CAPTURE(row.yaml);
    const auto parsed = parse_configuration(kHead + row.yaml);
    REQUIRE(parsed);
    CHECK(kinds_of(parsed->configuration) == row.kinds);
  }
  CHECK_THAT(
      message_of(kHead + "trainingOperator: {schemes: [MXJob]}"),
      Catch::Contains("trainingOperator.schemes: Invalid value") && Catch::Contains("MXJob"));
  CHECK_THAT(message_of(kHead + "trainingOperator: {only: true}"),
             Catch::Contains("trainingOperator.schemes: Required value"));

  ControllerOptions options;
  options.training_operator.schemes = {"JAXJob"};
  options.training_operator.gang_scheduler = "volcano";
  options.training_operator.threads = 64;
  const auto both = load_configuration(options);
  REQUIRE(both);
  CHECK(kinds_of(both->configuration) == "JAXJob ");
  CHECK_FALSE(both->configuration.trainingOperator.only);
  CHECK(both->configuration.trainingOperator.settings.gang_scheduler == "volcano");
  CHECK(both->configuration.concurrency_of("JAXJob.kubeflow.org", 32) == 64);
  CHECK(both->configuration.leaderElection.resourceName == "trainer.kubeflow.org");
}

TEST_CASE("upstream's manager has its own defaults") {
  ControllerOptions options;
  options.training_operator.is_manager = true;
  options.training_operator.threads = 1;  // fewer than usual: only more have an effect
  options.ns = "team";
  auto loaded = load_configuration(options);
  REQUIRE(loaded);
  const Configuration& c = loaded->configuration;
  CHECK(c.trainingOperator.only);
  CHECK(c.trainingOperator.schemes.size() == 6);
  CHECK(c.watchNamespace == "team");
  CHECK_FALSE(c.leaderElection.leaderElect);
  CHECK(c.leaderElection.resourceName == kTrainingOperatorLease);
  CHECK(c.metrics.bindAddress == ":8080");
  CHECK_FALSE(c.metrics.secureServing);
  CHECK(c.certManagement.webhookServiceName == "training-operator");
  CHECK(c.certManagement.webhookSecretName == "training-operator-webhook-cert");
  CHECK(c.concurrency_of("PyTorchJob.kubeflow.org", 32) == 32);
  CHECK_FALSE(c.clientConnection.qps);
  CHECK_FALSE(c.marksFinishedJobs);
  options.training_operator.marks_finished = true;
  options.training_operator.leader_elect = true;
  options.training_operator.lease = "other";
  options.training_operator.qps = 20;
  options.metrics_address = ":9090";
  loaded = load_configuration(options);
  REQUIRE(loaded);
  CHECK(loaded->configuration.leaderElection.leaderElect);
  CHECK(loaded->configuration.marksFinishedJobs);
  CHECK(loaded->configuration.leaderElection.resourceName == "other");
  CHECK(loaded->configuration.clientConnection.qps == 20);
  CHECK(loaded->configuration.metrics.bindAddress == ":9090");
}

TEST_CASE("the configuration in the manifests equals the defaults") {
  std::ifstream file(test::source_root() + "/manifests/base/config.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  const auto documents = kube::parse_yaml_documents(text.str());
  REQUIRE(documents);
  std::string shipped;
  for (const kube::Json& document : *documents) {
    if (const kube::Json* found = document.find_path({"data", "controller_manager_config.yaml"})) {
      shipped = found->as_string();
    }
  }
  REQUIRE_FALSE(shipped.empty());
  const auto parsed = parse_configuration(shipped);
  REQUIRE(parsed);
  CHECK(parsed->warnings.empty());
  const Configuration defaults;
  const Configuration& c = parsed->configuration;
  CHECK(c.webhook.port == defaults.webhook.port);
  CHECK(c.metrics.bindAddress == defaults.metrics.bindAddress);
  CHECK(c.health.healthProbeBindAddress == defaults.health.healthProbeBindAddress);
  CHECK(c.certManagement.webhookServiceName == defaults.certManagement.webhookServiceName);
  CHECK(c.certManagement.webhookSecretName == defaults.certManagement.webhookSecretName);
  CHECK(c.leaderElection.resourceName == defaults.leaderElection.resourceName);
  CHECK(c.statusServer.port == defaults.statusServer.port);
  CHECK_FALSE(c.clientConnection.qps);
}
