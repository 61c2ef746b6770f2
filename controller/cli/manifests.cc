// What an installation needs: `trainer crds` and `trainer rbac`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/kinds/registry.hh"
#include "controller/registration/cluster_role.hh"

namespace trainer {

int run_crds(Console& console) {
  print_documents(custom_resource_definitions(production_registry(KindOptions())),
                  OutputFormat::kYaml, console.out);
  return kExitDone;
}

int run_rbac(const std::string& option, Console& console) {
  const Registry registry = production_registry(KindOptions());
  const auto options = cluster_role_options(registry);
  if (!option.empty() && std::find(options.begin(), options.end(), option) == options.end()) {
    console.err << fmt::format("option {}: there is none of this name: choose from {}\n", option,
                               fmt::join(options, ", "));
    return kExitRefused;
  }
  console.out << cluster_role(registry, option);
  return kExitDone;
}

}  // namespace trainer
