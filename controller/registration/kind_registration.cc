#include "controller/registration/kind_registration.hh"

#include <algorithm>
#include <utility>

#include "kube/model/field_error.hh"

namespace trainer {

void ServerIdentity::set_ca(std::string pem) {
  const std::string before = std::exchange(ca_pem, std::move(pem));
  if (before.empty() || before == ca_pem) return;
  for (const auto& handler : on_ca_change) handler();
}

std::vector<kube::ControllerRegistration> controllers_of(const Registry& registry) {
  std::vector<kube::ControllerRegistration> controllers;
  for (const KindRegistration& kind : registry) controllers.push_back(kind.controller);
  return controllers;
}

std::vector<Webhook> published_webhooks(const Registry& registry) {
  std::vector<Webhook> webhooks;
  for (const KindRegistration& kind : registry) {
    if (!kind.admission.is_published) continue;
    webhooks.insert(webhooks.end(), kind.admission.webhooks.begin(), kind.admission.webhooks.end());
  }
  return webhooks;
}

std::set<std::string> configuration_names(const Registry& registry) {
  std::set<std::string> names;
  for (const KindRegistration& kind : registry) {
    for (const Webhook& webhook : kind.admission.webhooks) names.emplace(webhook.configuration);
  }
  return names;
}

bool has_mutating_webhooks(const Registry& registry) {
  return std::any_of(registry.begin(), registry.end(), [](const KindRegistration& kind) {
    const auto& all = kind.admission.webhooks;
    return std::any_of(all.begin(), all.end(), [](const Webhook& one) { return one.is_mutating; });
  });
}

std::vector<std::string> concurrency_warnings(const Configuration& configuration,
                                              const Registry& registry) {
  std::set<std::string, std::less<>> known;
  for (const KindRegistration& kind : registry) {
    known.insert(kind.controller.group_kind);
    for (const ApiKind& each : kind.crds)
      known.insert(each.resource.kind + "." + each.resource.group);
  }
  std::vector<std::string> warnings;
  for (const auto& [name, count] : configuration.groupKindConcurrency) {
    if (known.contains(name)) continue;
    warnings.push_back(kube::join_key("controller.groupKindConcurrency", name) +
                       ": nothing of this kind is reconciled here; the setting has no effect");
  }
  return warnings;
}

std::vector<kube::Json> custom_resource_definitions(const Registry& registry) {
  std::vector<kube::Json> all;
  for (const KindRegistration& kind : registry) {
    for (const ApiKind& each : kind.crds) all.push_back(custom_resource_definition(each));
  }
  return all;
}

}  // namespace trainer
