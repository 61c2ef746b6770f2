// `plan` says whether a job fits into the cluster now, what it waits for, or why it never fits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <utility>

#include "controller/cli/cluster.hh"
#include "controller/cli/commands.hh"
#include "controller/cli/documents.hh"
#include "controller/cli/plan_report.hh"
#include "controller/cli/read_plan.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

bool is_renderable(const KindRegistration& kind) {
  return kind.why && std::ranges::any_of(kind.render, [](const RenderHook& hook) {
           return hook.render != nullptr;
         });
}

// A word such as trainjob/NAME is an object of the cluster, unless there is a file of this name.
bool is_object(const std::string& word) {
  std::error_code error;
  return word != "-" && word.find('/') != word.npos && !word.ends_with(".yaml") &&
         !word.ends_with(".yml") && !word.ends_with(".json") &&
         !std::filesystem::exists(word, error);
}

bool is_job(const Json& document, const Registry& registry) {
  return std::ranges::any_of(registry, [&document](const KindRegistration& kind) {
    return is_renderable(kind) && kind.controller.resource().kind == document.get_string("kind");
  });
}

std::string title_of_jobs(const std::vector<Json>& documents, const std::string& ns) {
  std::vector<std::string> titles;
  for (const Json& document : documents) {
    Json shown = document;
    Json* metadata = shown.find("metadata");
    const bool is_without_namespace =
        metadata != nullptr && metadata->is_object() && metadata->get("namespace").empty();
    if (is_without_namespace) metadata->set("namespace", ns);
    titles.push_back(title_of(shown));
  }
  return fmt::format("{}", fmt::join(titles, ", "));
}

Task<Result<fit::PlanAnswer>> plan_documents(kube::ApiClient& client, const Registry& registry,
                                             std::vector<Json> documents, std::string ns,
                                             Console& console) {
  PlanQuery query;
  query.job.jobs = 0;
  for (const Json& each : documents) {
    if (!is_job(each, registry)) continue;
    query.job.read_labels(each);
    ++query.job.jobs;
  }
  auto objects =
      co_await render_for_plan(client, registry, std::move(documents), std::move(ns), console);
  if (!objects) co_return tl::unexpected(objects.error());
  query.objects = std::move(*objects);
  co_return co_await read_plan(client, registry, std::move(query));
}

Task<Result<fit::PlanAnswer>> plan_stored(kube::ApiClient& client, const Registry& registry,
                                          Target target, kube::ObjectKey key) {
  auto object = co_await client.get(target.resource(), key);
  if (!object) co_return tl::unexpected(object.error());
  std::string selector = label_query(target.kind->why->pod_label, key.name);
  auto pods = co_await list_all(client, kube::kPods, key.ns, std::move(selector));
  if (!pods) co_return tl::unexpected(pods.error());
  co_return co_await read_stored_plan(client, registry, *target.kind, std::move(*object),
                                      std::move(*pods));
}

int print_plan(const Result<fit::PlanAnswer>& answer, const std::string& title, kube::Time now,
               const PlanOptions& options, Console& console) {
  if (!answer) {
    console.err << answer.error().message << '\n';
    const kube::ErrorCode code = answer.error().code;
    const bool is_refused =
        code == kube::ErrorCode::kInvalid || code == kube::ErrorCode::kForbidden;
    return is_refused ? kExitRefused : kExitNoCluster;
  }
  print_value(plan_json(*answer, title), plan_text(*answer, title, now), options.format,
              console.out);
  if (answer->verdict == fit::Verdict::kFits) return kExitDone;
  return answer->verdict == fit::Verdict::kNever ? kExitNever : kExitRefused;
}

int plan_object(const PlanOptions& options, const Registry& registry, Console& console) {
  auto opened =
      open_target(registry, "plan", options.files, is_renderable, options.cluster, console);
  if (!opened) return opened.error();
  const auto& [target, key, cluster] = *opened;
  const auto answer = cluster->run(plan_stored(cluster->client(), registry, target, key));
  if (!answer && answer.error().code != kube::ErrorCode::kInvalid)
    return report_cluster_error(answer.error(), target.resource(), key, console);
  const std::string title = target.resource().kind + " " + key.to_string();
  return print_plan(answer, title, cluster->client().clock().now(), options, console);
}

}  // namespace

int run_plan(const PlanOptions& options, const Registry& registry, Console& console) {
  if (options.files.size() == 1 && is_object(options.files[0]))
    return plan_object(options, registry, console);
  std::vector<Json> documents;
  for (const std::string& file : options.files) {
    auto read = read_documents(file, console.in);
    if (!read) {
      console.err << read.error().message << '\n';
      return kExitRefused;
    }
    std::ranges::move(*read, std::back_inserter(documents));
  }
  auto cluster = Cluster::connect(options.cluster);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return kExitNoCluster;
  }
  std::vector<Json> jobs;
  for (const Json& each : documents)
    if (is_job(each, registry)) jobs.push_back(each);
  const std::string title = title_of_jobs(jobs, (*cluster)->ns());
  const auto answer = (*cluster)->run(plan_documents(
      (*cluster)->client(), registry, std::move(documents), (*cluster)->ns(), console));
  return print_plan(answer, title, (*cluster)->client().clock().now(), options, console);
}

}  // namespace trainer
