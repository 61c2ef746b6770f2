// The RBAC rules that the kinds of a registry need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/registration/kind_registration.hh"

namespace trainer {

// A ClusterRole of the controller as YAML, each rule with the reason for it: what every
// installation needs, or the rules of one option (kube::PolicyRule::option).
std::string cluster_role(const Registry& registry, std::string_view option = {});
// The options, in the order of the registry's rules.
std::vector<std::string> cluster_role_options(const Registry& registry);

// A Role for a controller with rights in its own namespace only (Configuration::namespaced), with
// what that needs for its Lease. `registry`: made with that setting.
std::string namespaced_role(const Registry& registry);

}  // namespace trainer
