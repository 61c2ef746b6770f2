#include "controller/admission/webhooks.hh"

#include <fmt/format.h>

#include <optional>

#include "kube/model/digest.hh"
#include "kube/model/resources.hh"
#include "runtimes/jobset/names.hh"

namespace trainer {

using kube::Json;

namespace {

constexpr std::string_view kTrainer = "trainer.kubeflow.org";
constexpr std::string_view kJobSet = "jobset.x-k8s.io";

struct Webhook {
  std::string_view configuration;
  bool is_mutating;
  std::string_view name;
  std::string_view path;
  std::string_view group;
  std::string_view version;
  std::string_view plural;
  bool is_for_updates = true;
};

constexpr Webhook kWebhooks[] = {
    {kDefaulterName, true, "defaulter.trainjob.trainer.kubeflow.org", kMutateTrainJob, kTrainer,
     "v1alpha1", "trainjobs"},
    {kDefaulterName, true, "defaulter.trainingruntime.trainer.kubeflow.org", kMutateRuntime,
     kTrainer, "v1alpha1", "trainingruntimes"},
    {kDefaulterName, true, "defaulter.clustertrainingruntime.trainer.kubeflow.org",
     kMutateClusterRuntime, kTrainer, "v1alpha1", "clustertrainingruntimes"},
    {kValidatorName, false, "validator.clustertrainingruntime.trainer.kubeflow.org",
     kValidateClusterRuntime, kTrainer, "v1alpha1", "clustertrainingruntimes"},
    {kValidatorName, false, "validator.trainingruntime.trainer.kubeflow.org", kValidateRuntime,
     kTrainer, "v1alpha1", "trainingruntimes"},
    {kValidatorName, false, "validator.trainjob.trainer.kubeflow.org", kValidateTrainJob, kTrainer,
     "v1alpha1", "trainjobs"},
    {kJobSetWebhooksName, true, "defaulter.jobset.trainer.kubeflow.org", kMutateJobSet, kJobSet,
     "v1alpha2", "jobsets", false},
    {kJobSetWebhooksName, false, "validator.jobset.trainer.kubeflow.org", kValidateJobSet, kJobSet,
     "v1alpha2", "jobsets"},
};

// What the API server finds out by itself, before it asks us.
constexpr std::string_view kIsExclusive =
    "has(object.metadata.annotations) && "
    "'alpha.jobset.sigs.k8s.io/exclusive-topology' in object.metadata.annotations && "
    "!('alpha.jobset.sigs.k8s.io/node-selector' in object.metadata.annotations)";
constexpr std::string_view kIsFollower =
    "!('batch.kubernetes.io/job-completion-index' in object.metadata.annotations) || "
    "object.metadata.annotations['batch.kubernetes.io/job-completion-index'] != '0'";
// What mutate_trainjob() does to a new TrainJob: it notes the time of patches and converts what
// older versions had. Most have neither and spare the call. Schemas are looked at later, so
// anything may stand here, and a condition that fails would refuse the request without saying why.
constexpr std::string_view kHasPatchesOrLegacyFields =
    "request.operation != 'CREATE' || has(object.spec) && type(object.spec) == map && "
    "(['runtimePatches', 'podTemplateOverrides', 'podSpecOverrides', 'labels', 'annotations']"
    ".exists(name, name in object.spec) || "
    "has(object.spec.trainer) && type(object.spec.trainer) == map && "
    "has(object.spec.trainer.numProcPerNode) && "
    "type(object.spec.trainer.numProcPerNode) == string)";
constexpr std::string_view kIsOther =
    "has(object.metadata.annotations) && has(object.spec.priority) && "
    "!('alpha.jobset.sigs.k8s.io/exclusive-topology' in object.metadata.annotations) && "
    "!('alpha.jobset.sigs.k8s.io/node-selector' in object.metadata.annotations)";

constexpr Webhook kPlacer = {kPodWebhooksName, true, "placer.pods.jobset.trainer.kubeflow.org",
                             kMutatePod,       "",   "v1",
                             "pods",           false};
constexpr Webhook kLabeler = {kPodWebhooksName, true, "labeler.pods.jobset.trainer.kubeflow.org",
                              kMutatePod,       "",   "v1",
                              "pods",           false};
constexpr Webhook kFollowerValidator = {
    kPodWebhooksName, false, "validator.pods.jobset.trainer.kubeflow.org", kValidatePod, "", "v1",
    "pods",           false};

Json client_config(const Webhook& webhook, const WebhookTarget& target) {
  Json config = Json::object();
  if (target.url.empty()) {
    config.set("service", Json::object({{"name", target.service.name},
                                        {"namespace", target.service.ns},
                                        {"path", webhook.path}}));
  } else {
    config.set("url", target.url + std::string(webhook.path));
  }
  if (!target.ca_pem.empty()) config.set("caBundle", kube::base64_encode(target.ca_pem));
  return config;
}

// A CEL string literal.
std::string cel_string(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "'";
}

Json condition(std::string_view name, std::string_view expression) {
  return Json::object({{"name", name}, {"expression", expression}});
}

Json match_conditions(const Webhook& webhook, const std::string& username) {
  // An object that is going away must be able to lose its finalizers, whatever the rules have
  // become since it was made.
  Json conditions =
      Json::array({condition("not-being-deleted", "!has(object.metadata.deletionTimestamp)")});
  if (webhook.path == kMutateTrainJob) {
    conditions.push_back(condition("patched-or-of-an-older-version", kHasPatchesOrLegacyFields));
  }
  if (webhook.group == kJobSet && !username.empty()) {
    conditions.push_back(condition(
        "not-written-by-the-controller",
        fmt::format("!(request.userInfo.username == {} && has(request.options.fieldManager) && "
                    "request.options.fieldManager == 'trainer')",
                    cel_string(username))));
  }
  return conditions;
}

Json webhook_json(const Webhook& webhook, const WebhookTarget& target, Json conditions) {
  Json operations = Json::array({"CREATE"});
  if (webhook.is_for_updates) operations.push_back("UPDATE");
  Json json = Json::object({
      {"name", webhook.name},
      {"admissionReviewVersions", Json::array({"v1"})},
      {"clientConfig", client_config(webhook, target)},
      {"failurePolicy", "Fail"},
      {"matchConditions", std::move(conditions)},
      {"rules", Json::array({Json::object({{"apiGroups", Json::array({webhook.group})},
                                           {"apiVersions", Json::array({webhook.version})},
                                           {"operations", std::move(operations)},
                                           {"resources", Json::array({webhook.plural})}})})},
      {"sideEffects", "None"},
  });
  // Runtimes may be installed in one go with the controller, before anybody can answer for them.
  if (webhook.plural.ends_with("runtimes")) {
    Json selector = Json::object({{"key", "trainer.kubeflow.org/webhook-validation"},
                                  {"operator", "NotIn"},
                                  {"values", Json::array({"disabled"})}});
    json.set("objectSelector",
             Json::object({{"matchExpressions", Json::array({std::move(selector)})}}));
  }
  return json;
}

Json pod_webhook_json(const Webhook& webhook, const WebhookTarget& target, Json conditions) {
  Json json = webhook_json(webhook, target, std::move(conditions));
  Json selector = Json::object({{"key", jobset::kJobSetNameKey}, {"operator", "Exists"}});
  json.set("objectSelector",
           Json::object({{"matchExpressions", Json::array({std::move(selector)})}}));
  return json;
}

WebhookConfiguration empty_configuration(const kube::Resource& resource, std::string_view name) {
  return {resource, Json::object({{"apiVersion", resource.api_version()},
                                  {"kind", resource.kind},
                                  {"metadata", Json::object({{"name", name}})},
                                  {"webhooks", Json::array()}})};
}

}  // namespace

std::vector<WebhookConfiguration> webhook_configurations(const WebhookTarget& target,
                                                         const std::string& username) {
  std::vector<WebhookConfiguration> configurations;
  for (const Webhook& webhook : kWebhooks) {
    const kube::Resource& resource = webhook.is_mutating ? kube::kMutatingWebhookConfigurations
                                                         : kube::kValidatingWebhookConfigurations;
    const bool is_next = configurations.empty() || configurations.back().resource != resource ||
                         configurations.back().key().name != webhook.configuration;
    if (is_next) configurations.push_back(empty_configuration(resource, webhook.configuration));
    configurations.back().object["webhooks"].push_back(
        webhook_json(webhook, target, match_conditions(webhook, username)));
  }
  return configurations;
}

std::vector<WebhookConfiguration> pod_webhook_configurations(const WebhookTarget& target) {
  const Json exclusive = condition("exclusively-placed", kIsExclusive);
  WebhookConfiguration mutating =
      empty_configuration(kube::kMutatingWebhookConfigurations, kPodWebhooksName);
  mutating.object["webhooks"].push_back(
      pod_webhook_json(kPlacer, target, Json::array({exclusive})));
  Json labeler =
      pod_webhook_json(kLabeler, target, Json::array({condition("of-another-jobset", kIsOther)}));
  labeler.set("failurePolicy", "Ignore").set("timeoutSeconds", 2);
  mutating.object["webhooks"].push_back(std::move(labeler));
  WebhookConfiguration validating =
      empty_configuration(kube::kValidatingWebhookConfigurations, kPodWebhooksName);
  validating.object["webhooks"].push_back(pod_webhook_json(
      kFollowerValidator, target, Json::array({exclusive, condition("follower", kIsFollower)})));
  return {std::move(mutating), std::move(validating)};
}

bool is_own_webhook_configuration(std::string_view name) {
  return name == kDefaulterName || name == kValidatorName || name == kJobSetWebhooksName ||
         name == kPodWebhooksName;
}

Json ca_bundle_patch(const Json& configuration, const std::string& ca_pem) {
  const std::string encoded = kube::base64_encode(ca_pem);
  Json operations = Json::array();
  std::size_t index = 0;
  for (const Json& webhook : configuration.get_array("webhooks")) {
    const std::string path = fmt::format("/webhooks/{}", index++);
    const Json* client = webhook.find("clientConfig");
    if (client == nullptr || client->get_string("caBundle") == encoded) continue;
    operations.push_back(Json::object(
        {{"op", "test"}, {"path", path + "/name"}, {"value", webhook.get_string("name")}}));
    operations.push_back(Json::object(
        {{"op", "add"}, {"path", path + "/clientConfig/caBundle"}, {"value", encoded}}));
  }
  return operations;
}

}  // namespace trainer
