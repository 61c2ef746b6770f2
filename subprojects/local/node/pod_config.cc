#include "local/node/pod_config.hh"

#include <algorithm>

#include "api/describe/reader.hh"
#include "api/describe/writer.hh"

namespace trainer::node {

// The visitors of api/describe read and write a Tier in this way.
static kube::Json to_json(Tier tier) {
  return static_cast<std::int64_t>(tier);
}

static void read(const kube::Json& value, const wire::FieldPath& path, Tier& out,
                 kube::FieldErrors& errors) {
  std::int64_t number = static_cast<std::int64_t>(out);
  wire::read(value, path, number, errors);
  out = static_cast<Tier>(number);
}

template <class D>
void Mount::describe(D& d) {
  d.field("source", &Mount::source);
  d.field("target", &Mount::target);
  d.field("readOnly", &Mount::is_read_only);
  d.field("subPath", &Mount::sub_path);
}

template <class D>
void ContainerConfig::describe(D& d) {
  d.field("name", &ContainerConfig::name);
  d.field("image", &ContainerConfig::image);
  d.field("argv", &ContainerConfig::argv);
  d.field("env", &ContainerConfig::env);
  d.field("workingDir", &ContainerConfig::working_dir);
  d.field("mounts", &ContainerConfig::mounts);
  d.field("terminationPath", &ContainerConfig::termination_path);
  d.field("logsForMessage", &ContainerConfig::has_logs_for_message);
}

template <class D>
void MemoryVolume::describe(D& d) {
  d.field("path", &MemoryVolume::path);
  d.field("size", &MemoryVolume::size);
}

template <class D>
void PodConfig::describe(D& d) {
  d.field("namespace", &PodConfig::ns);
  d.field("name", &PodConfig::name);
  d.field("uid", &PodConfig::uid);
  d.field("hostname", &PodConfig::hostname);
  d.field("address", &PodConfig::address);
  d.field("network", &PodConfig::has_network);
  d.always("tier", &PodConfig::tier);
  d.always("restartPolicy", &PodConfig::restart_policy);
  d.field("runAsUser", &PodConfig::run_as_user);
  d.field("runAsGroup", &PodConfig::run_as_group);
  d.field("memoryVolumes", &PodConfig::memory_volumes);
  d.field("initContainers", &PodConfig::init_containers);
  d.field("containers", &PodConfig::containers);
}

bool mounts_below(const PodConfig& config, const std::filesystem::path& folder) {
  const auto is_below = [&folder](const Mount& mount) {
    return (mount.source + "/").starts_with(folder.native() + "/");
  };
  for (const auto* list : {&config.init_containers, &config.containers})
    for (const ContainerConfig& container : *list)
      if (std::any_of(container.mounts.begin(), container.mounts.end(), is_below)) return true;
  return false;
}

kube::Json to_json(const PodConfig& config) {
  return wire::to_json(config);
}

PodConfig read_pod_config(const kube::Json& value) {
  PodConfig config;
  kube::FieldErrors errors;  // there are none: the agent has written it
  wire::read_object(value, wire::FieldPath(""), config, errors);
  return config;
}

}  // namespace trainer::node
