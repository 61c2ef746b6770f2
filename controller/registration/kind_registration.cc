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

namespace {

// A version is served if one of the registrations serves it.
void join(ApiKind& kind, const ApiKind& other) {
  for (const KindVersion& version : other.versions) {
    const auto known = std::ranges::find(kind.versions, version.name, &KindVersion::name);
    if (known == kind.versions.end())
      kind.versions.push_back(version);
    else
      known->is_served = known->is_served || version.is_served;
  }
}

}  // namespace

bool share_crd(const kube::Resource& one, const kube::Resource& other) {
  return one.group == other.group && one.plural == other.plural;
}

std::vector<ApiKind> api_kinds_of(const Registry& registry) {
  std::vector<ApiKind> all;
  for (const KindRegistration& kind : registry) {
    for (const ApiKind& each : kind.crds) {
      const auto known = std::ranges::find_if(
          all, [&each](const ApiKind& other) { return share_crd(other.resource, each.resource); });
      if (known == all.end())
        all.push_back(each);
      else
        join(*known, each);
    }
  }
  return all;
}

std::vector<kube::Json> custom_resource_definitions(const Registry& registry) {
  std::vector<kube::Json> all;
  for (const ApiKind& each : api_kinds_of(registry))
    all.push_back(custom_resource_definition(each));
  return all;
}

}  // namespace trainer
