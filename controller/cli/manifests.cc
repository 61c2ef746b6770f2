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

int run_crds(const std::string& option, Console& console) {
  Registry registry = full_registry();
  std::erase_if(registry,
                [&option](const KindRegistration& kind) { return kind.option != option; });
  if (registry.empty()) {
    console.err << fmt::format("option {}: no kind has this name: choose v1\n", option);
    return kExitRefused;
  }
  print_documents(custom_resource_definitions(registry), OutputFormat::kYaml, console.out);
  return kExitDone;
}

int run_rbac(const std::string& option, Console& console) {
  const Registry registry = full_registry();
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
