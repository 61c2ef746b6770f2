#include "api/describe/jobset.hh"

#include "api/kinds/kinds.hh"

namespace trainer {

ApiKind jobset_kind() {
  const std::vector<PrinterColumn> columns{
      {"TerminalState", "string", ".status.terminalState", "Final state of JobSet"},
      {"Restarts", "string", ".status.restarts", "Number of restarts"},
      {"Completed", "string", ".status.conditions[?(@.type==\"Completed\")].status"},
      {"Suspended", "string", ".spec.suspend", "JobSet suspended"},
      {"Age", "date", ".metadata.creationTimestamp", "Time this JobSet was created"}};
  return {kJobSets, {{.name = "v1alpha2", .make_schema = root_schema<JobSet>, .columns = columns}}};
}

}  // namespace trainer
