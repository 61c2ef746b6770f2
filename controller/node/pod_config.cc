#include "controller/node/pod_config.hh"

namespace trainer::node {

namespace {

using kube::Json;

Json words(const std::vector<std::string>& texts) {
  Json::Array list(texts.begin(), texts.end());
  return list;
}

std::vector<std::string> read_words(const Json& value, std::string_view member) {
  std::vector<std::string> texts;
  for (const Json& text : value.get_array(member)) texts.push_back(text.as_string());
  return texts;
}

std::string text_of(const Json& value, std::string_view member) {
  return std::string(value.get_string(member));
}

Json container_json(const ContainerConfig& container) {
  Json::Array mounts;
  for (const Mount& mount : container.mounts) {
    Json one = Json::object({{"source", mount.source}, {"target", mount.target}});
    one.set("readOnly", mount.is_read_only);
    mounts.push_back(std::move(one));
  }
  return Json::object({{"name", container.name},
                       {"image", container.image},
                       {"argv", words(container.argv)},
                       {"env", words(container.env)},
                       {"workingDir", container.working_dir},
                       {"mounts", std::move(mounts)},
                       {"terminationPath", container.termination_path},
                       {"logsForMessage", container.has_logs_for_message}});
}

ContainerConfig read_container(const Json& value) {
  ContainerConfig container;
  container.name = text_of(value, "name");
  container.image = text_of(value, "image");
  container.argv = read_words(value, "argv");
  container.env = read_words(value, "env");
  container.working_dir = text_of(value, "workingDir");
  for (const Json& mount : value.get_array("mounts"))
    container.mounts.push_back(
        {text_of(mount, "source"), text_of(mount, "target"), mount.get_bool("readOnly")});
  container.termination_path = text_of(value, "terminationPath");
  container.has_logs_for_message = value.get_bool("logsForMessage");
  return container;
}

Json containers_json(const std::vector<ContainerConfig>& containers) {
  Json::Array list;
  for (const ContainerConfig& container : containers) list.push_back(container_json(container));
  return list;
}

std::vector<ContainerConfig> read_containers(const Json& value, std::string_view member) {
  std::vector<ContainerConfig> containers;
  for (const Json& container : value.get_array(member))
    containers.push_back(read_container(container));
  return containers;
}

std::optional<std::int64_t> read_id(const Json& value, std::string_view member) {
  const Json& id = value.get(member);
  return id.is_int() ? std::optional(id.as_int()) : std::nullopt;
}

}  // namespace

Json to_json(const PodConfig& config) {
  Json::Array volumes;
  for (const MemoryVolume& volume : config.memory_volumes)
    volumes.push_back(Json::object({{"path", volume.path}, {"size", volume.size}}));
  Json value = Json::object({{"namespace", config.ns},
                             {"name", config.name},
                             {"uid", config.uid},
                             {"hostname", config.hostname},
                             {"address", config.address},
                             {"tier", static_cast<int>(config.tier)},
                             {"restartPolicy", config.restart_policy},
                             {"memoryVolumes", std::move(volumes)},
                             {"initContainers", containers_json(config.init_containers)},
                             {"containers", containers_json(config.containers)}});
  if (config.run_as_user) value.set("runAsUser", *config.run_as_user);
  if (config.run_as_group) value.set("runAsGroup", *config.run_as_group);
  return value;
}

PodConfig read_pod_config(const Json& value) {
  PodConfig config;
  config.ns = text_of(value, "namespace");
  config.name = text_of(value, "name");
  config.uid = text_of(value, "uid");
  config.hostname = text_of(value, "hostname");
  config.address = text_of(value, "address");
  config.tier = static_cast<Tier>(value.get_int("tier", 3));
  config.restart_policy = text_of(value, "restartPolicy");
  config.run_as_user = read_id(value, "runAsUser");
  config.run_as_group = read_id(value, "runAsGroup");
  for (const Json& volume : value.get_array("memoryVolumes"))
    config.memory_volumes.push_back({text_of(volume, "path"), volume.get_int("size")});
  config.init_containers = read_containers(value, "initContainers");
  config.containers = read_containers(value, "containers");
  return config;
}

}  // namespace trainer::node
