#include "controller/cli/cluster.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <ostream>

#include "kube/client/kubeconfig.hh"
#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/text.hh"
#include "runtimes/views/created_version.hh"

namespace trainer {
namespace {

bool is_called(const kube::Resource& resource, const std::string& word) {
  for (const std::string& name : {kube::to_lower(resource.kind), resource.plural})
    if (word == name || word == name + "." + resource.group) return true;
  return false;
}

// An object that cannot be read, or shows no version, is taken for one of the first kind: the
// command reads it again, and reports what is wrong.
kube::Task<const KindRegistration*> choose_version(kube::ApiClient& client, Target target,
                                                   kube::ObjectKey key) {
  std::vector<const KindRegistration*> all{target.kind};
  all.insert(all.end(), target.others.begin(), target.others.end());
  for (const KindRegistration* each : all) {
    const auto object = co_await client.get(each->controller.resource(), key);
    if (!object) continue;  // perhaps the cluster does not serve this version
    const std::string_view version = created_version(*object);
    for (const KindRegistration* one : all)
      if (one->controller.resource().version == version) co_return one;
    co_return each;
  }
  co_return target.kind;
}

}  // namespace

kube::Task<kube::Result<std::vector<kube::Json>>> list_all(kube::ApiClient& client,
                                                           kube::Resource resource, std::string ns,
                                                           std::string query) {
  std::vector<kube::Json> items;
  std::function<void(std::string_view)> on_item = [&items](std::string_view text) {
    if (auto item = kube::parse_json(text)) items.push_back(std::move(*item));
  };
  const auto listed = co_await client.list(std::move(resource), std::move(ns), std::move(query),
                                           std::move(on_item));
  if (!listed) co_return tl::unexpected(listed.error());
  co_return items;
}

std::string label_query(std::string_view key, std::string_view value) {
  return "labelSelector=" + kube::percent_encode(fmt::format("{}={}", key, value));
}

kube::Result<Target> find_target(const Registry& registry, const std::vector<std::string>& words,
                                 bool (*has_hook)(const KindRegistration& kind)) {
  const std::size_t slash = words[0].find('/');
  const bool has_slash = words.size() == 1 && slash != std::string::npos;
  const bool has_kind = has_slash || words.size() > 1;
  const std::string kind = kube::to_lower(has_slash ? words[0].substr(0, slash) : words[0]);
  const std::string name = has_slash ? words[0].substr(slash + 1) : words.back();
  std::vector<std::string> known;
  for (const KindRegistration& each : registry) {
    if (!has_hook(each)) continue;
    Target target{&each, name};
    if (!name.empty() && (!has_kind || is_called(target.resource(), kind))) {
      for (const KindRegistration& other : registry)
        if (&other != &each && has_hook(other) &&
            share_crd(other.controller.resource(), target.resource()))
          target.others.push_back(&other);
      return target;
    }
    const std::string form = kube::to_lower(target.resource().kind) + "/NAME";
    if (std::ranges::find(known, form) == known.end()) known.push_back(form);
  }
  return kube::fail(kube::ErrorCode::kInvalid,
                    "\"{}\" names no object of a kind that this command knows: write {}",
                    fmt::join(words, " "), fmt::join(known, " or "));
}

kube::Result<std::unique_ptr<Cluster>> Cluster::connect(const ClusterOptions& options,
                                                        kube::ApiClient::Options client) {
  auto config = kube::load_config(options.kubeconfig, options.context, kube::ExecUsers::kAllowed);
  if (!config) return tl::unexpected(config.error());
  // The plugin runs before any request, so that no deadline runs while a user signs in.
  if (config->exec_plugin) {
    if (auto renewed = config->exec_plugin->renew(kube::SystemClock().now()); !renewed)
      return tl::unexpected(renewed.error());
  }
  config->user_agent = "kubectl-trainer/" TRAINER_VERSION;
  std::unique_ptr<Cluster> cluster(new Cluster());
  cluster->ns_ = options.ns.empty() ? config->ns : options.ns;
  kube::TransportLimits limits;
  cluster->transport_ = kube::make_transport(cluster->io_, *config, limits);
  cluster->client_ = std::make_unique<kube::ApiClient>(*cluster->transport_, cluster->clock_,
                                                       cluster->random_, std::move(client));
  return cluster;
}

tl::expected<OpenTarget, int> open_target(const Registry& registry, std::string_view command,
                                          const std::vector<std::string>& words,
                                          bool (*has_hook)(const KindRegistration& kind),
                                          const ClusterOptions& options, Console& console) {
  auto target = find_target(registry, words, has_hook);
  if (!target) {
    console.err << console.program << ": " << command << ": " << target.error().message << '\n';
    return tl::unexpected(kExitUsage);
  }
  auto cluster = Cluster::connect(options);
  if (!cluster) {
    console.err << cluster.error().message << '\n';
    return tl::unexpected(kExitNoCluster);
  }
  kube::ObjectKey key{(*cluster)->ns(), target->name};
  if (!target->others.empty())
    target->kind = (*cluster)->run(choose_version((*cluster)->client(), *target, key));
  return OpenTarget{std::move(*target), std::move(key), std::move(*cluster)};
}

int report_cluster_error(const kube::Error& error, const kube::Resource& resource,
                         const kube::ObjectKey& key, Console& console) {
  using kube::ErrorCode;
  const std::string what = resource.kind + " " + key.to_string();
  if (error.code == ErrorCode::kNotFound) {
    console.err << fmt::format(
        "{}: there is none: `kubectl get {} -A` lists them all, -n names a namespace\n", what,
        resource.plural);
    return kExitRefused;
  }
  if (error.code == ErrorCode::kForbidden || error.code == ErrorCode::kInvalid ||
      error.code == ErrorCode::kBadRequest) {
    console.err << fmt::format("{}: {}\n", what, error.message);
    return kExitRefused;
  }
  // kubectl connects through the proxy.
  const bool has_proxy = std::getenv("HTTPS_PROXY") || std::getenv("https_proxy");
  console.err << fmt::format(
      "{}: {}: is the cluster up, and --kubeconfig or --context the right one?{}\n", what,
      error.message,
      has_proxy ? " (HTTPS_PROXY is set, and trainer connects without a proxy)" : "");
  return kExitNoCluster;
}

}  // namespace trainer
