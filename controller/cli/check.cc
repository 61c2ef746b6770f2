// `trainer check` tests an installation by the requests of its users.
#include <fmt/format.h>

#include <functional>
#include <optional>
#include <ostream>
#include <utility>

#include "api/jobset.hh"
#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "kube/model/meta.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

constexpr std::chrono::milliseconds kRenewalPause{500};
constexpr const char* kNone = "no-runtime-has-this-name";

// Returns what was seen, as a text for people. `lease` is in the controller's namespace.
using Probe =
    std::function<Task<Result<std::string>>(kube::ApiClient& client, kube::ObjectKey lease)>;

Task<Result<std::string>> kinds_are_served(kube::ApiClient& client, kube::ObjectKey lease) {
  for (const kube::Resource& resource : {kTrainJobs, kTrainingRuntimes, kJobSets}) {
    std::function<void(std::string_view)> on_item = [](std::string_view) {};
    const auto page = co_await client.list(resource, lease.ns, "limit=1", std::move(on_item), 1);
    if (!page) co_return tl::unexpected(page.error().at("list " + resource.plural));
  }
  co_return std::string("TrainJobs, TrainingRuntimes and JobSets are served");
}

Task<Result<std::string>> there_is_a_leader(kube::ApiClient& client, kube::ObjectKey lease) {
  if (lease.name.empty()) co_return std::string("not looked for");
  // The Lease must be seen to be renewed. If only its times were compared, a machine whose clock is
  // wrong would not see a leader, or see one that is gone.
  std::optional<std::string> renewed;
  auto end = client.clock().steady();
  do {
    if (renewed) co_await kube::sleep(client.clock(), kRenewalPause);
    const auto found = co_await client.get(kube::kLeases, lease);
    if (!found) co_return tl::unexpected(found.error().at("Lease " + lease.to_string()));
    const Json& spec = found->get("spec");
    const std::string holder(spec.get_string("holderIdentity"));
    if (holder.empty()) break;
    const std::string at(spec.get_string("renewTime"));
    if (renewed && at != *renewed) co_return holder + " leads";
    if (!renewed) end += std::chrono::seconds(spec.get_int("leaseDurationSeconds", 15));
    renewed = at;
  } while (client.clock().steady() < end);
  co_return kube::fail(kube::ErrorCode::kNotFound,
                       "Lease {}: nobody holds it: see the Deployment's pods and their logs",
                       lease.to_string());
}

Task<Result<std::string>> admission_is_not_checked(kube::ApiClient&, kube::ObjectKey) {
  co_return std::string("not looked for");
}

// This creates nothing: a dry run of a TrainJob without a runtime must be refused by the webhook.
Task<Result<std::string>> admission_answers(kube::ApiClient& client, kube::ObjectKey lease) {
  kube::ObjectKey collection;
  collection.ns = lease.ns;
  Json job = Json::object({{"apiVersion", kTrainJobs.api_version()}, {"kind", kTrainJobs.kind}});
  job["metadata"].set("name", "trainer-check");
  job["spec"]["runtimeRef"].set("name", kNone);
  std::string path = kube::api_path(kTrainJobs, collection) + "?dryRun=All";
  const auto answer = co_await client.post(std::move(path), std::move(job));
  if (answer) {
    co_return kube::fail(kube::ErrorCode::kNotFound,
                         "a TrainJob without a runtime was accepted: no webhook is called for "
                         "TrainJobs: apply the webhook configurations again");
  }
  if (answer.error().message.find(kNone) != std::string::npos &&
      answer.error().message.find("admission webhook") != std::string::npos)
    co_return std::string("admission answers");
  co_return tl::unexpected(answer.error().at("dry run of a TrainJob"));
}

// An installation that has just been made needs a moment for its certificates and its leader.
Task<Result<void>> check_all(kube::ApiClient& client, kube::ObjectKey lease,
                             const CheckOptions& options, Console& console) {
  const std::pair<const char*, Probe> probes[] = {
      {"kinds", kinds_are_served},
      {"leader", there_is_a_leader},
      {"admission", options.has_webhooks ? admission_answers : admission_is_not_checked}};
  Result<void> all;
  const auto end = client.clock().steady() + options.limit;
  for (const auto& [name, probe] : probes) {
    auto seen = co_await probe(client, lease);
    while (!seen && client.clock().steady() < end) {
      co_await kube::sleep(client.clock(), kRenewalPause);
      seen = co_await probe(client, lease);
    }
    console.out << fmt::format("{:<10} {}\n", name, seen ? *seen : seen.error().message);
    if (!seen) all = kube::fail(seen.error().code, "the installation does not work: {}", name);
  }
  co_return all;
}

}  // namespace

int run_check(const CheckOptions& options, Console& console) {
  const kube::ObjectKey lease{options.cluster.ns.empty() ? "kubeflow-system" : options.cluster.ns,
                              options.lease};
  return in_cluster(options.cluster, console, [&](kube::ApiClient& client) {
    return check_all(client, lease, options, console);
  });
}

}  // namespace trainer
