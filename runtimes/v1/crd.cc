#include <utility>

#include "api/kinds/v1job_schema.hh"
#include "runtimes/v1/framework.hh"

namespace trainer::v1 {

ApiKind api_kind(const Framework& framework) {
  // The type of the last condition, whatever its status is.
  std::vector<PrinterColumn> columns{{"State", "string", ".status.conditions[-1:].type"},
                                     kAgeColumn};
  if (framework.crd.is_age_first) std::swap(columns.front(), columns.back());
  KindVersion version{.name = framework.resource.version,
                      .make_schema =
                          [&framework] {
                            return make_job_schema({framework.replica_specs, framework.crd.members,
                                                    framework.crd.elastic_members});
                          },
                      .columns = std::move(columns)};
  if (!framework.crd.scale_path.empty()) {
    version.scale = {framework.crd.scale_path, ".status.replicaStatuses.Worker.active",
                     ".status.replicaStatuses.Worker.selector"};
  }
  return {framework.resource, {std::move(version)}};
}

}  // namespace trainer::v1
