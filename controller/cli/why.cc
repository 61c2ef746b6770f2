#include <fmt/format.h>

#include <ostream>

#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/why_report.hh"
#include "kube/client/url.hh"
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

Task<Result<WhyReport>> ask(kube::ApiClient& client, Target target, kube::ObjectKey key,
                            std::string program) {
  const WhyHook& hook = *target.kind->why;
  const auto object = co_await client.get(target.resource(), key);
  if (!object) co_return tl::unexpected(object.error());
  auto state = hook.read_state(*object, program);
  if (!state) co_return kube::fail(kube::ErrorCode::kInvalid, kube::to_string(state.error()));
  const auto pods = co_await list_all(
      client, kube::kPods, key.ns,
      "labelSelector=" + kube::percent_encode(fmt::format("{}={}", hook.pod_label, key.name)));
  if (!pods) co_return tl::unexpected(pods.error());
  // Of all objects of this name: a TrainJob has a JobSet of its name.
  auto events = co_await list_all(client, kube::kEvents, key.ns,
                                  "fieldSelector=involvedObject.name%3D" + key.name);
  // A user who may not list events gets the report without them.
  if (!events) events = std::vector<Json>();
  co_return why(target.resource(), key, std::move(*state), *pods, *events, client.clock().now());
}

}  // namespace

int run_why(const WhyOptions& options, const Registry& registry, Console& console) {
  const auto target = find_target(
      registry, options.target, [](const KindRegistration& kind) { return kind.why.has_value(); });
  if (!target) {
    console.err << console.program << ": why: " << target.error().message << '\n';
    return kExitUsage;
  }
  auto cluster = Cluster::connect(options.cluster);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  const kube::ObjectKey key{(*cluster)->ns(), target->name};
  const auto report = (*cluster)->run(ask((*cluster)->client(), *target, key, console.program));
  if (!report) return report_cluster_error(report.error(), target->resource(), key, console);
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
  return report->is_failed ? kExitRefused : kExitDone;
}

}  // namespace trainer
