// The Service, ConfigMap and Secret of a job.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/patch.hh"
#include "kube/model/resources.hh"
#include "runtimes/mpijob/context.hh"
#include "runtimes/views/labels.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;

constexpr std::string_view kPrivateKey = "ssh-privatekey";
constexpr std::string_view kPublicKey = "ssh-publickey";
constexpr std::string_view kScriptHead = "#!/bin/sh\n";

Json labelled(const std::string& job, Json object) {
  object["metadata"].set("labels", Json::object({{"app", job}}));
  return object;
}

// "j-worker-0.j.ns.svc"
std::string host_name(const v1::V1Job& job, std::string_view pod, const MPISettings& settings) {
  const std::string name = fmt::format("{}.{}.{}.svc", pod, job.metadata.name, job.metadata.ns);
  return settings.cluster_domain.empty() ? name : name + "." + settings.cluster_domain;
}

std::string host_line(const v1::V1Job& job, const std::string& host) {
  const std::int32_t slots = *job.spec.slotsPerWorker;
  return job.spec.mpiImplementation == "OpenMPI" ? fmt::format("{} slots={}\n", host, slots)
                                                 : fmt::format("{}:{}\n", host, slots);
}

void sync_service(MPIJobContext& context) {
  const Json desired = make_service(context.job);
  if (!context.observed.service)
    return context.create(kube::kServices, context.name(), labelled(context.name(), desired),
                          kService);
  const Json& stored = context.observed.service->get("spec");
  Json change = Json::object();
  Json selector = kube::merge_diff(stored.get("selector"), desired.get("spec").get("selector"));
  if (!selector.is_null()) change.set("selector", std::move(selector));
  const bool publishes = *context.job.spec.runLauncherAsWorker;
  if (stored.get_bool("publishNotReadyAddresses") != publishes)
    change.set("publishNotReadyAddresses", publishes);
  if (!change.empty())
    context.patch(kube::kServices, context.name(), Json::object({{"spec", std::move(change)}}),
                  kService);
}

void sync_config_map(MPIJobContext& context) {
  const std::string name = context.name() + "-config";
  Json desired = make_config_map(context);
  if (!context.observed.config_map)
    return context.create(kube::kConfigMaps, name, labelled(context.name(), std::move(desired)),
                          kConfigMap);
  const Json& stored = context.observed.config_map->get("data");
  Json change = Json::object();
  for (const auto& [key, value] : desired.get_object("data"))
    if (stored.get_string(key) != digest_of(value)) change.set(key, value);
  for (const auto& [key, digest] : context.observed.config_map->get_object("data"))
    if (!desired.get("data").find(key)) change.set(key, nullptr);
  if (!change.empty())
    context.patch(kube::kConfigMaps, name, Json::object({{"data", std::move(change)}}), kConfigMap);
}

// A key that was added or removed makes a new pair, as in mpi-operator. Pods that run keep the old
// one until they start again.
void sync_secret(MPIJobContext& context) {
  const std::string name = context.name() + "-ssh";
  if (!context.observed.secret) {
    context.create(kube::kSecrets, name, labelled(context.name(), make_secret()), kSecret);
  } else {
    const Json::Object& keys = context.observed.secret->get_object("data");
    const bool is_complete = keys.size() == 2 && keys.find(kPrivateKey) && keys.find(kPublicKey);
    if (is_complete) return;
    Json data = Json::object();
    for (const auto& [key, value] : keys) data.set(key, nullptr);
    context.patch(kube::kSecrets, name, Json::object({{"data", std::move(data)}}), kSecret);
  }
  context.plan.ssh_key_actions.push_back(context.plan.actions.size() - 1);
}

}  // namespace

Json make_service(const v1::V1Job& job) {
  Json spec = Json::object({{"clusterIP", "None"},
                            {"selector", Json::object({{kV1OperatorNameKey, "mpi-operator"},
                                                       {kV1JobNameKey, job.metadata.name}})}});
  if (*job.spec.runLauncherAsWorker) spec.set("publishNotReadyAddresses", true);
  return Json::object({{"spec", std::move(spec)}});
}

Json make_secret() {
  return Json::object({{"type", "kubernetes.io/ssh-auth"}, {"data", Json::object()}});
}

Json make_config_map(const MPIJobContext& context) {
  const v1::V1Job& job = context.job;
  const MPISettings& settings = context.observed.settings;
  std::string hosts;
  std::string script(kScriptHead);
  const auto echo = [&script](const std::string& host) { script += "echo " + host + "\n"; };
  if (*job.spec.runLauncherAsWorker) {
    const std::string host = host_name(job, launcher_name(job.metadata.name), settings);
    hosts += host_line(job, host);
    echo(host);
  }
  for (std::int32_t i = 0; i < worker_count(job); ++i)
    hosts += host_line(job, host_name(job, worker_name(job.metadata.name, i), settings));
  std::vector<std::string_view> running;
  for (const v1::V1PodView* pod : context.workers)
    if (pod && pod->phase == "Running") running.push_back(pod->name);
  std::sort(running.begin(), running.end());
  for (const std::string_view pod : running) echo(host_name(job, pod, settings));
  return Json::object(
      {{"data", Json::object({{"hostfile", hosts}, {"discover_hosts.sh", script}})}});
}

std::int64_t config_map_bytes(const v1::V1Job& job, const MPISettings& settings) {
  const std::int64_t workers = worker_count(job);
  const std::string longest =
      host_name(job, worker_name(job.metadata.name, worker_count(job)), settings);
  constexpr std::int64_t kEcho = sizeof("echo \n") - 1;
  return (workers + 1) * (2 * std::ssize(longest) + kEcho + std::ssize(host_line(job, ""))) +
         std::ssize(kScriptHead);
}

void sync_objects(MPIJobContext& context) {
  sync_service(context);
  sync_config_map(context);
  sync_secret(context);
}

}  // namespace trainer::mpijob
