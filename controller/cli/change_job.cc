#include "controller/cli/change_job.hh"

#include <utility>

#include "controller/cli/job_list.hh"

namespace trainer {

int JobInCluster::refuse(std::string_view sentence) const {
  console.err << console.program << ": " << verb << ": " << sentence << '\n';
  return kExitRefused;
}

int JobInCluster::report(const kube::Error& error) const {
  if (error.code == kube::ErrorCode::kConflict || error.code == kube::ErrorCode::kAlreadyExists)
    return refuse(error.message);
  return report_cluster_error(error, resource(), opened.key, console);
}

tl::expected<JobInCluster, int> open_job(const Registry& registry, std::string_view verb,
                                         const JobOptions& options, Console& console) {
  auto opened = open_target(registry, verb, options.target, is_job_kind, options.cluster, console);
  if (!opened) return tl::unexpected(opened.error());
  return JobInCluster{registry, std::move(*opened), std::string(verb), console};
}

}  // namespace trainer
