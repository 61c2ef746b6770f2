#include "api/api.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"

namespace trainer {

int run_crds(Console& console) {
  print_documents(custom_resource_definitions(), OutputFormat::kYaml, console.out);
  return kExitDone;
}

}  // namespace trainer
