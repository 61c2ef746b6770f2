#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/kinds/registry.hh"

namespace trainer {

int run_crds(Console& console) {
  print_documents(custom_resource_definitions(production_registry(KindOptions())),
                  OutputFormat::kYaml, console.out);
  return kExitDone;
}

}  // namespace trainer
