#include "controller/registration/cluster_role.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "controller/admission/webhook_registrar.hh"

namespace trainer {
namespace {

// Rules of equal groups, resources and names are one rule, with the verbs of all.
std::vector<kube::PolicyRule> merged(const std::vector<kube::PolicyRule>& rules) {
  std::vector<kube::PolicyRule> all;
  for (const kube::PolicyRule& rule : rules) {
    const auto same = std::find_if(all.begin(), all.end(), [&rule](const kube::PolicyRule& other) {
      return other.groups == rule.groups && other.resources == rule.resources &&
             other.names == rule.names;
    });
    if (same == all.end()) {
      all.push_back(rule);
      continue;
    }
    if (same->comment.empty()) same->comment = rule.comment;
    std::set<std::string> verbs(same->verbs.begin(), same->verbs.end());
    verbs.insert(rule.verbs.begin(), rule.verbs.end());
    same->verbs.assign(verbs.begin(), verbs.end());
  }
  return all;
}

// Returns the rules that a process with these kinds needs, which all have the same option.
std::vector<kube::PolicyRule> rules_of(const Registry& registry, const std::string& lease) {
  std::vector<kube::PolicyRule> rules;
  for (const KindRegistration& kind : registry)
    rules.insert(rules.end(), kind.controller.rules.begin(), kind.controller.rules.end());
  rules.push_back({"Whether another installation leads, too.",
                   {"coordination.k8s.io"},
                   {"leases"},
                   {lease},
                   {"list"}});
  for (kube::PolicyRule& rule :
       ca_injector_rules(configuration_names(registry), has_mutating_webhooks(registry)))
    rules.push_back(std::move(rule));
  rules.push_back({"Whether a client may read the metrics (`metrics.auth.enabled`).",
                   {"authorization.k8s.io"},
                   {"subjectaccessreviews"},
                   {},
                   {"create"}});
  return rules;
}

std::vector<kube::PolicyRule> all_rules(const Registry& registry) {
  std::map<std::string, Registry> by_option;
  for (const KindRegistration& kind : registry) by_option[kind.option].push_back(kind);
  std::vector<kube::PolicyRule> all;
  for (const auto& [option, kinds] : by_option) {
    const std::string lease = option == kTrainingOperatorOption
                                  ? std::string(kTrainingOperatorLease)
                                  : Configuration::LeaderElection().resourceName;
    for (kube::PolicyRule& rule : rules_of(kinds, lease)) {
      if (rule.option.empty()) rule.option = option;
      all.push_back(std::move(rule));
    }
  }
  return all;
}

// Returns a YAML list on one line; "" is the core group.
std::string list_of(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(word.empty() ? "\"\"" : word);
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// Returns a role as YAML.
std::string role_of(std::string_view kind, std::string_view name,
                    const std::vector<kube::PolicyRule>& rules) {
  std::string text = fmt::format(
      "apiVersion: rbac.authorization.k8s.io/v1\n"
      "kind: {}\n"
      "metadata:\n"
      "  name: kubeflow-trainer-{}\n"
      "rules:\n",
      kind, name);
  for (const kube::PolicyRule& rule : merged(rules)) {
    if (!rule.comment.empty()) text += fmt::format("# {}\n", rule.comment);
    text += fmt::format("- apiGroups: {}\n  resources: {}\n", list_of(rule.groups),
                        list_of(rule.resources));
    if (!rule.names.empty()) text += fmt::format("  resourceNames: {}\n", list_of(rule.names));
    text += fmt::format("  verbs: {}\n", list_of(rule.verbs));
  }
  return text;
}

// A Role gives no right to these resources: they have no namespace, or that of another
// installation.
bool is_outside_of_namespaces(const std::string& resource) {
  constexpr std::string_view kOutside[] = {"clustertrainingruntimes", "priorityclasses",
                                           "tokenreviews", "validatingwebhookconfigurations",
                                           "leases"};
  return std::find(std::begin(kOutside), std::end(kOutside), resource) != std::end(kOutside);
}

}  // namespace

std::string cluster_role(const Registry& registry, std::string_view option) {
  std::vector<kube::PolicyRule> rules = all_rules(registry);
  std::erase_if(rules, [option](const kube::PolicyRule& rule) { return rule.option != option; });
  return role_of("ClusterRole", option.empty() ? "controller-manager" : option, rules);
}

std::string namespaced_role(const Registry& registry) {
  const std::vector<std::string> group{"coordination.k8s.io"};
  const std::vector<std::string> leases{"leases"};
  std::vector<kube::PolicyRule> rules;
  for (const KindRegistration& kind : registry) {
    for (kube::PolicyRule rule : kind.controller.rules) {
      // Rights to PodGroups are useful where a gang scheduler is installed.
      const bool is_of_gangs = !rule.resources.empty() && rule.resources.front() == "podgroups";
      if (!rule.option.empty() && !is_of_gangs) continue;
      std::erase_if(rule.resources, is_outside_of_namespaces);
      if (!rule.resources.empty()) rules.push_back(rule);
    }
  }
  rules.push_back({"The leader's Lease. RBAC knows no names for what is created.",
                   group,
                   leases,
                   {},
                   {"create"}});
  rules.push_back(
      {"", group, leases, {Configuration::LeaderElection().resourceName}, {"get", "patch"}});
  return role_of("Role", "controller-manager", rules);
}

std::vector<std::string> cluster_role_options(const Registry& registry) {
  std::vector<std::string> options;
  for (const kube::PolicyRule& rule : all_rules(registry)) {
    if (!rule.option.empty() &&
        std::find(options.begin(), options.end(), rule.option) == options.end())
      options.push_back(rule.option);
  }
  return options;
}

}  // namespace trainer
