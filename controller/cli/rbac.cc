#include <ostream>

#include "controller/cli/commands.hh"
#include "controller/kinds/registry.hh"
#include "controller/registration/cluster_role.hh"

namespace trainer {

int run_rbac(Console& console) {
  console.out << cluster_role(production_registry(KindOptions()));
  return kExitDone;
}

}  // namespace trainer
