#include "controller/admission/webhook.hh"

#include <fmt/format.h>

#include "kube/model/digest.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;

Json client_config(const Webhook& webhook, const WebhookTarget& target) {
  Json config = Json::object();
  if (target.url.empty()) {
    config.set("service", Json::object({{"name", target.service.name},
                                        {"namespace", target.service.ns},
                                        {"path", webhook.path}}));
  } else {
    config.set("url", target.url + webhook.path);
  }
  if (!target.ca_pem.empty()) config.set("caBundle", kube::base64_encode(target.ca_pem));
  return config;
}

// Returns a CEL string literal.
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
  Json conditions = Json::array();
  if (webhook.skips_deletion) {
    conditions.push_back(condition("not-being-deleted", "!has(object.metadata.deletionTimestamp)"));
  }
  for (const auto& [name, expression] : webhook.conditions)
    conditions.push_back(condition(name, expression));
  if (webhook.skips_own_writes && !username.empty()) {
    conditions.push_back(condition(
        "not-written-by-the-controller",
        fmt::format("!(request.userInfo.username == {} && has(request.options.fieldManager) && "
                    "request.options.fieldManager == 'trainer')",
                    cel_string(username))));
  }
  return conditions;
}

Json webhook_json(const Webhook& webhook, const WebhookTarget& target,
                  const std::string& username) {
  Json operations = Json::array({"CREATE"});
  if (webhook.is_for_updates) operations.push_back("UPDATE");
  const kube::Resource& resource = webhook.resource;
  Json json = Json::object({
      {"name", webhook.name},
      {"admissionReviewVersions", Json::array({"v1"})},
      {"clientConfig", client_config(webhook, target)},
      {"failurePolicy", webhook.failure_policy},
      {"matchConditions", match_conditions(webhook, username)},
      {"rules", Json::array({Json::object({{"apiGroups", Json::array({resource.group})},
                                           {"apiVersions", Json::array({resource.version})},
                                           {"operations", std::move(operations)},
                                           {"resources", Json::array({resource.plural})}})})},
      {"sideEffects", "None"},
  });
  if (webhook.is_exact) json.set("matchPolicy", "Exact");
  if (!webhook.object_selector.is_null()) json.set("objectSelector", webhook.object_selector);
  if (webhook.timeout_seconds) json.set("timeoutSeconds", *webhook.timeout_seconds);
  return json;
}

WebhookConfiguration empty_configuration(const kube::Resource& resource, std::string_view name) {
  return {resource, Json::object({{"apiVersion", resource.api_version()},
                                  {"kind", resource.kind},
                                  {"metadata", Json::object({{"name", name}})},
                                  {"webhooks", Json::array()}})};
}

}  // namespace

std::vector<WebhookConfiguration> webhook_configurations(const std::vector<Webhook>& webhooks,
                                                         const WebhookTarget& target,
                                                         const std::string& username) {
  std::vector<WebhookConfiguration> configurations;
  for (const Webhook& webhook : webhooks) {
    const kube::Resource& resource = webhook.is_mutating ? kube::kMutatingWebhookConfigurations
                                                         : kube::kValidatingWebhookConfigurations;
    const bool is_next = configurations.empty() || configurations.back().resource != resource ||
                         configurations.back().key().name != webhook.configuration;
    if (is_next) configurations.push_back(empty_configuration(resource, webhook.configuration));
    configurations.back().object["webhooks"].push_back(webhook_json(webhook, target, username));
  }
  return configurations;
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
