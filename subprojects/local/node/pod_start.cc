#include "local/node/pod_start.hh"

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/names.hh"
#include "kube/model/resources.hh"
#include "local/node/files.hh"
#include "local/node/names.hh"
#include "local/node/pod_config.hh"
#include "local/node/volumes.hh"

namespace trainer::node {

namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

using Objects = std::map<std::string, Json, std::less<>>;

Task<Result<Objects>> fetch(kube::ApiClient& client, kube::Resource resource, std::string ns,
                            std::set<std::string> names) {
  Objects objects;
  for (const std::string& name : names) {
    // No object has such a name, and it would be a part of a path.
    if (!kube::check_dns1123_subdomain(name).empty()) continue;
    kube::ObjectKey key{ns, name};
    auto object = co_await client.get(resource, std::move(key));
    if (object)
      objects[name] = std::move(*object);
    else if (object.error().code != ErrorCode::kNotFound)
      co_return tl::unexpected(object.error());
  }
  co_return std::move(objects);
}

Json token_request(const Json& pod, const TokenSource& source) {
  const Json& meta = pod.get("metadata");
  Json bound = Json::object({{"apiVersion", "v1"},
                             {"kind", kube::kPods.kind},
                             {"name", meta.get("name")},
                             {"uid", meta.get("uid")}});
  Json spec = Json::object({{"audiences", Json::array({source.audience})},
                            {"boundObjectRef", std::move(bound)},
                            {"expirationSeconds", source.seconds}});
  return Json::object({{"apiVersion", "authentication.k8s.io/v1"},
                       {"kind", "TokenRequest"},
                       {"spec", std::move(spec)}});
}

Result<void> make_files(const Json& pod, const Sources& sources, const PodContext& place,
                        const PodConfig& config, const std::string& hosts) {
  const std::filesystem::path& directory = place.volumes.pod;
  for (const char* folder : {kScratch, kVolumes, kLogs, kRoot, "termination"})
    if (const auto made = make_directories(directory / folder); !made) return made;
  for (const MemoryVolume& volume : config.memory_volumes)
    if (const auto made = make_directories(volume.path); !made) return made;
  if (const auto made = make_volumes(pod, sources, place.facts, place.volumes); !made) return made;
  const std::string nsswitch = nsswitch_text(read_file("/etc/nsswitch.conf").value_or(""));
  if (const auto made = write_file(directory / kNsswitchFile, nsswitch, 0644); !made) return made;
  return write_file(directory / kHostsFile, hosts, 0644);
}

}  // namespace

Task<Result<Sources>> fetch_tokens(kube::ApiClient& client, Json pod) {
  Sources sources;
  const kube::ObjectKey account{
      kube::ObjectMeta::of(pod).ns,
      std::string(pod.get("spec").get_string("serviceAccountName", "default"))};
  const std::string path = kube::api_path(kube::kServiceAccounts, account, "token");
  const SourceNames names = sources_of(pod);
  for (const TokenSource& each : names.tokens) {
    Json request = token_request(pod, each);
    const auto answer = co_await client.post(path, std::move(request));
    if (!answer) co_return tl::unexpected(answer.error().at("token"));
    sources.tokens[each] = answer->get("status").get_string("token");
  }
  co_return std::move(sources);
}

Task<Result<Sources>> fetch_sources(kube::ApiClient& client, Json pod) {
  std::string ns = kube::ObjectMeta::of(pod).ns;
  SourceNames names = sources_of(pod);
  auto config_maps = co_await fetch(client, kube::kConfigMaps, ns, std::move(names.config_maps));
  if (!config_maps) co_return tl::unexpected(config_maps.error());
  auto secrets = co_await fetch(client, kube::kSecrets, ns, std::move(names.secrets));
  if (!secrets) co_return tl::unexpected(secrets.error());
  auto claims =
      co_await fetch(client, kube::kPersistentVolumeClaims, std::move(ns), std::move(names.claims));
  if (!claims) co_return tl::unexpected(claims.error());
  auto sources = co_await fetch_tokens(client, std::move(pod));
  if (!sources) co_return tl::unexpected(sources.error());
  sources->claims = std::move(*claims);
  sources->config_maps = std::move(*config_maps);
  sources->secrets = std::move(*secrets);
  co_return std::move(sources);
}

Result<pid_t> start_shim(const Json& pod, const Sources& sources, const PodContext& place,
                         const NodeFacts& facts, const std::string& hosts, const Command& shim) {
  const auto config = make_config(pod, sources, place, facts);
  if (!config) return tl::unexpected(config.error());
  if (const auto made = make_files(pod, sources, place, *config, hosts); !made)
    return tl::unexpected(made.error());
  const std::filesystem::path& directory = place.volumes.pod;
  const Fd lock = lock_pod(directory);
  if (!lock) return kube::fail(ErrorCode::kConflict, "another shim holds the pod");
  const auto written = replace_file(directory / kConfigFile, kube::print_json(to_json(*config)));
  if (!written) return tl::unexpected(written.error());
  return spawn_shim(shim, directory, std::string(pod.get("metadata").get_string("uid")), lock);
}

}  // namespace trainer::node
