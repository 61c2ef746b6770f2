#include <fmt/format.h>

#include <ostream>

#include "api/api.hh"
#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/why_report.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

Task<Result<std::vector<Json>>> list_all(kube::ApiClient& client, kube::Resource resource,
                                         std::string ns, std::string query) {
  std::vector<Json> items;
  std::function<void(std::string_view)> on_item = [&items](std::string_view text) {
    if (auto item = kube::parse_json(text)) items.push_back(std::move(*item));
  };
  const auto listed = co_await client.list(std::move(resource), std::move(ns), std::move(query),
                                           std::move(on_item));
  if (!listed) co_return tl::unexpected(listed.error());
  co_return items;
}

Task<Result<WhyReport>> ask(kube::ApiClient& client, kube::ObjectKey key, std::string program) {
  const auto object = co_await client.get(kTrainJobs, key);
  if (!object) co_return tl::unexpected(object.error());
  const auto job = read_trainjob(*object);
  if (!job) co_return kube::fail(kube::ErrorCode::kInvalid, kube::to_string(job.error()));
  const auto pods = co_await list_all(
      client, kube::kPods, key.ns, "labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D" + key.name);
  if (!pods) co_return tl::unexpected(pods.error());
  // Of the TrainJob and of the JobSet of the same name.
  auto events = co_await list_all(client, kube::kEvents, key.ns,
                                  "fieldSelector=involvedObject.name%3D" + key.name);
  // A user who may not list events gets the report without them.
  if (!events) events = std::vector<Json>();
  co_return why(*job, *pods, *events, client.clock().now(), program);
}

}  // namespace

int run_why(const WhyOptions& options, Console& console) {
  auto cluster = Cluster::connect(options.cluster);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  const kube::ObjectKey key{(*cluster)->ns(), options.job};
  const auto report = (*cluster)->run(ask((*cluster)->client(), key, console.program));
  if (!report) return report_cluster_error(report.error(), "TrainJob " + key.to_string(), console);
  switch (options.format) {
    case OutputFormat::kJson:
      console.out << kube::print_json_pretty(report->to_json()) << '\n';
      break;
    case OutputFormat::kYaml:
      console.out << kube::print_yaml(report->to_json());
      break;
    case OutputFormat::kText:
      console.out << report->to_text();
      break;
  }
  return report->phase == "Failed" ? kExitRefused : kExitDone;
}

}  // namespace trainer
