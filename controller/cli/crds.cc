#include <fmt/format.h>

#include <ostream>

#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/kinds/registry.hh"

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

}  // namespace trainer
