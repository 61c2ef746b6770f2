// The RBAC rules that the kinds of a registry need.
#pragma once

#include <string>

#include "controller/registration/kind_registration.hh"

namespace trainer {

// The ClusterRole of the controller as YAML, each rule with the reason for it.
std::string cluster_role(const Registry& registry);

}  // namespace trainer
