// The kinds of a registry need these RBAC rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/registration/kind_registration.hh"

namespace trainer {

// Returns a ClusterRole of the controller as YAML, each rule with the reason for it: the rules that
// every installation needs, or those of one option (kube::PolicyRule::option).
std::string cluster_role(const Registry& registry, std::string_view option = {});
// Returns the options, in the order of the registry's rules.
std::vector<std::string> cluster_role_options(const Registry& registry);

// Returns a Role for a controller with rights in its own namespace only
// (Configuration::namespaced), with the rights for its Lease. `registry` was made with that
// setting.
std::string namespaced_role(const Registry& registry);

}  // namespace trainer
