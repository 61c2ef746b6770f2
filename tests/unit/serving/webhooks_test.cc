#include <fstream>
#include <map>
#include <sstream>

#include "controller/admission/webhook.hh"
#include "controller/kinds/registry.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"
#include "tests/support/source_root.hh"

using namespace trainer;
using kube::Json;

namespace {

std::map<std::string, Json> by_kind_and_name(
    const std::vector<WebhookConfiguration>& configurations) {
  std::map<std::string, Json> map;
  for (const auto& item : configurations)
    map[item.resource.kind + " " + item.key().name] = item.object;
  return map;
}

std::vector<WebhookConfiguration> production_configurations(const WebhookTarget& target,
                                                            const std::string& username) {
  return webhook_configurations(published_webhooks(production_registry(KindOptions())), target,
                                username);
}

// Those of exclusive placement, which are installed separately.
std::vector<WebhookConfiguration> pod_configurations(const WebhookTarget& target) {
  for (const KindRegistration& kind : production_registry(KindOptions())) {
    if (!kind.admission.is_published)
      return webhook_configurations(kind.admission.webhooks, target, "");
  }
  return {};
}

// Returns those of a process that has V1 jobs alone.
std::vector<WebhookConfiguration> v1_configurations(const WebhookTarget& target) {
  KindOptions options;
  options.configuration.trainingOperator.only = true;
  options.configuration.trainingOperator.schemes = *v1::enabled_frameworks({});
  return webhook_configurations(published_webhooks(production_registry(options)), target, "");
}

// Returns those of a process that has MPIJobs of v2beta1 alone.
std::vector<WebhookConfiguration> mpi_configurations(const WebhookTarget& target) {
  KindOptions options;
  options.configuration.mpiOperator.enabled = true;
  options.configuration.mpiOperator.only = true;
  return webhook_configurations(published_webhooks(production_registry(options)), target, "");
}

WebhookTarget url_target() {
  WebhookTarget target;
  target.url = "https://10.88.0.1:9443";
  target.ca_pem = "PEM";
  return target;
}

}  // namespace

TEST_CASE(
    "names, paths and rules are upstream's for its kinds, and this project's own for JobSets") {
  const auto all = by_kind_and_name(production_configurations(url_target(), "admin"));
  REQUIRE(all.size() == 4);
  struct Case {
    const char* object;
    const char* webhook;
    const char* path;
    const char* resource;
    std::size_t operations;
  };
  const Case cases[] = {
      {"MutatingWebhookConfiguration defaulter.trainer.kubeflow.org",
       "defaulter.trainjob.trainer.kubeflow.org", "/mutate-trainer-kubeflow-org-v1alpha1-trainjob",
       "trainjobs", 2},
      {"ValidatingWebhookConfiguration validator.trainer.kubeflow.org",
       "validator.trainjob.trainer.kubeflow.org",
       "/validate-trainer-kubeflow-org-v1alpha1-trainjob", "trainjobs", 2},
      {"ValidatingWebhookConfiguration validator.trainer.kubeflow.org",
       "validator.trainingruntime.trainer.kubeflow.org",
       "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime", "trainingruntimes", 2},
      {"ValidatingWebhookConfiguration validator.trainer.kubeflow.org",
       "validator.clustertrainingruntime.trainer.kubeflow.org",
       "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime", "clustertrainingruntimes",
       2},
      {"MutatingWebhookConfiguration jobset.trainer.kubeflow.org",
       "defaulter.jobset.trainer.kubeflow.org", "/mutate-jobset-x-k8s-io-v1alpha2-jobset",
       "jobsets", 2},
      {"ValidatingWebhookConfiguration jobset.trainer.kubeflow.org",
       "validator.jobset.trainer.kubeflow.org", "/validate-jobset-x-k8s-io-v1alpha2-jobset",
       "jobsets", 2},
  };
  for (const Case& c : cases) {
    CAPTURE(c.webhook);
    REQUIRE(all.count(c.object) == 1);
    const Json* found = nullptr;
    for (const Json& webhook : all.at(c.object).get_array("webhooks")) {
      if (webhook.get_string("name") == c.webhook) found = &webhook;
    }
    REQUIRE(found != nullptr);
    CHECK(found->get_string("failurePolicy") == "Fail");
    CHECK(found->get_string("sideEffects") == "None");
    CHECK(found->find("clientConfig")->get_string("url") ==
          std::string("https://10.88.0.1:9443") + c.path);
    CHECK(found->find("clientConfig")->get_string("caBundle") == kube::base64_encode("PEM"));
    const Json& rule = found->get_array("rules").front();
    CHECK(rule.get_array("resources") == Json::Array{c.resource});
    CHECK(rule.get_array("operations").size() == c.operations);
    CHECK((found->find("objectSelector") != nullptr) ==
          (std::string(c.path).find("runtime") != std::string::npos));
  }
}

TEST_CASE("upstream's own JobSet configurations are never touched") {
  const auto names = configuration_names(production_registry(KindOptions()));
  CHECK(names ==
        std::set<std::string>{"defaulter.trainer.kubeflow.org", "validator.trainer.kubeflow.org",
                              "jobset.trainer.kubeflow.org", "pods.jobset.trainer.kubeflow.org"});
}

TEST_CASE(
    "only JobSets are let through when this controller writes them, and a quote in a user's name "
    "stays in its "
    "string") {
  const auto all = by_kind_and_name(production_configurations(url_target(), "o'neil\\"));
  for (const auto& [name, object] : all) {
    for (const Json& webhook : object.get_array("webhooks")) {
      CAPTURE(webhook.get_string("name"));
      const auto& conditions = webhook.get_array("matchConditions");
      const bool is_jobset = name.find("jobset") != std::string::npos;
      const bool is_conversion = webhook.get_string("name").starts_with("defaulter.trainjob.");
      REQUIRE(conditions.size() == (is_jobset || is_conversion ? 2 : 1));
      CHECK(conditions.front().get_string("expression") ==
            "!has(object.metadata.deletionTimestamp)");
      if (is_jobset) {
        CHECK(conditions.back().get_string("expression").find("'o\\'neil\\\\'") !=
              std::string::npos);
      }
    }
  }
}

TEST_CASE("in the cluster the webhooks name a Service and wait for their CA") {
  WebhookTarget target;
  target.service = {"kubeflow-system", "manager"};
  for (const auto& item : production_configurations(target, "me")) {
    for (const Json& webhook : item.object.get_array("webhooks")) {
      const Json& client = *webhook.find("clientConfig");
      CHECK(client.find("service")->get_string("name") == "manager");
      CHECK(client.find("service")->get_string("namespace") == "kubeflow-system");
      CHECK(client.find("url") == nullptr);
      CHECK(client.find("caBundle") == nullptr);
    }
  }
}

TEST_CASE("the CA is set where it is missing or another, after a test of the webhook's name") {
  const std::string encoded = kube::base64_encode("CA");
  const Json configuration = Json::object(
      {{"webhooks",
        Json::array(
            {Json::object({{"name", "a"}, {"clientConfig", Json::object({{"caBundle", encoded}})}}),
             Json::object({{"name", "b"}, {"clientConfig", Json::object({{"caBundle", "b2xk"}})}}),
             Json::object({{"name", "c"}, {"clientConfig", Json::object()}})})}});
  const Json patch = ca_bundle_patch(configuration, "CA");
  REQUIRE(patch.size() == 4);
  const Json expected = Json::array({
      Json::object({{"op", "test"}, {"path", "/webhooks/1/name"}, {"value", "b"}}),
      Json::object(
          {{"op", "add"}, {"path", "/webhooks/1/clientConfig/caBundle"}, {"value", encoded}}),
      Json::object({{"op", "test"}, {"path", "/webhooks/2/name"}, {"value", "c"}}),
      Json::object(
          {{"op", "add"}, {"path", "/webhooks/2/clientConfig/caBundle"}, {"value", encoded}}),
  });
  CHECK(patch == expected);
  CHECK(ca_bundle_patch(Json::object(), "CA").empty());
}

TEST_CASE("pods of no JobSet are never sent, and only followers and leaders may be held up") {
  const auto all = by_kind_and_name(pod_configurations(url_target()));
  REQUIRE(all.size() == 2);
  for (const auto& [name, object] : all) {
    for (const Json& webhook : object.get_array("webhooks")) {
      CAPTURE(webhook.get_string("name"));
      const Json& selector = webhook.find("objectSelector")->get_array("matchExpressions").front();
      CHECK(selector.get_string("key") == "jobset.sigs.k8s.io/jobset-name");
      CHECK(selector.get_string("operator") == "Exists");
      const auto& condition = webhook.get_array("matchConditions").front();
      const bool is_required = webhook.get_string("failurePolicy") == "Fail";
      CHECK(is_required == (condition.get_string("name") == "exclusively-placed"));
      const Json& rule = webhook.get_array("rules").front();
      CHECK(rule.get_array("resources") == Json::Array{"pods"});
      CHECK(rule.get_array("operations") == Json::Array{"CREATE"});
    }
  }
}

namespace {

void check_same(const std::string& path, const std::vector<WebhookConfiguration>& expected) {
  std::ifstream file(test::source_root() + "/manifests/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  const auto documents = kube::parse_yaml_documents(text.str());
  REQUIRE(documents);
  REQUIRE(documents->size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(expected[i].key().name);
    CHECK(kube::print_json_pretty((*documents)[i]) == kube::print_json_pretty(expected[i].object));
  }
}

}  // namespace

TEST_CASE("what is installed in a cluster is what the program installs outside one") {
  WebhookTarget target;
  target.service = {"kubeflow-system", "kubeflow-trainer-controller-manager"};
  check_same(
      "base/webhooks.yaml",
      production_configurations(
          target, "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"));
  check_same("overlays/exclusive-placement/webhooks.yaml", pod_configurations(target));
  check_same("overlays/mpi/webhooks.yaml", mpi_configurations(target));
  target.service = {"kubeflow", "training-operator"};
  check_same("v1/controller/webhooks.yaml", v1_configurations(target));
}
