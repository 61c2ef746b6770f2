#include "controller/cli/workload.hh"

#include <utility>

#include "controller/cli/cluster.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

namespace {

constexpr std::string_view kJobUid = "kueue.x-k8s.io/job-uid";
constexpr std::string_view kVersions[] = {"v1beta2", "v1beta1"};

}  // namespace

Task<Result<std::vector<Workload>>> find_workloads(kube::ApiClient& client, std::string ns,
                                                   std::string uid) {
  std::vector<Workload> found;
  const std::string query = label_query(kJobUid, uid);
  for (const std::string_view version : kVersions) {
    kube::Resource resource{"kueue.x-k8s.io", std::string(version), "workloads", "Workload", true};
    const auto listed = co_await list_all(client, resource, ns, query);
    if (!listed && listed.error().code == kube::ErrorCode::kNotFound) continue;
    if (!listed) co_return tl::unexpected(listed.error().at("Workload of the job"));
    for (const Json& each : *listed)
      found.push_back(
          {resource, kube::ObjectMeta::of(each).key(), each.get("spec").get_bool("active", true)});
    break;
  }
  co_return found;
}

Task<Result<void>> set_active(kube::ApiClient& client, Workload workload, bool is_active) {
  Json patch;
  patch["spec"].set("active", is_active);
  const std::string title = "Workload " + workload.key.to_string();
  const auto done = co_await client.merge_patch(std::move(workload.resource),
                                                std::move(workload.key), std::move(patch));
  if (!done) co_return tl::unexpected(done.error().at(title));
  co_return Result<void>();
}

}  // namespace trainer
