#include "local/node/make_config.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "kube/model/quantity.hh"
#include "local/node/files.hh"

namespace trainer::node {

namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kSharedMemoryVolume = ".shm";
constexpr const char* kTerminationPath = "/dev/termination-log";
// The controller mounts its own files here, and only variables and commands name these paths.
constexpr std::array<std::string_view, 2> kControllerPaths = {"/var/run/kubeflow/",
                                                              "/var/run/secrets/kubeflow/"};

tl::unexpected<kube::Error> refuse(std::string_view field, std::string_view what) {
  return kube::fail(ErrorCode::kUnsupported, "{}: {}", field, what);
}

// Fields that would change how a pod runs, and that local mode does not support.
Result<void> check_container(const Json& container, const std::string& field) {
  static constexpr std::array<std::pair<const char*, const char*>, 4> kLeftOut = {{
      {"livenessProbe", "local mode has no liveness probes: remove it"},
      {"startupProbe", "local mode has no startup probes: remove it"},
      {"lifecycle", "local mode has no lifecycle hooks: remove it"},
      {"volumeDevices", "local mode has no block devices: use a volume mount"},
  }};
  for (const auto& [member, problem] : kLeftOut)
    if (!container.get(member).empty()) return refuse(field + "." + member, problem);
  if (container.get("securityContext").get_bool("privileged"))
    return refuse(field + ".securityContext.privileged",
                  "pods of local mode have the rights of their user: remove it");
  if (container.get_string("restartPolicy") == "Always")
    return refuse(field + ".restartPolicy",
                  "local mode has no sidecars among init containers: make it one of containers");
  const Json& probe = container.get("readinessProbe");
  if (!probe.empty() && probe.find("tcpSocket") == nullptr)
    return refuse(field + ".readinessProbe", "local mode probes by tcpSocket only: use it");
  if (container.get_array("command").empty())
    return refuse(field + ".command",
                  "local mode has no images, so it does not know what this one runs: state it");
  return {};
}

const Json* find_volume(const Json& pod, std::string_view name) {
  for (const Json& volume : pod.get("spec").get_array("volumes"))
    if (volume.get_string("name") == name) return &volume;
  return nullptr;
}

std::string normal(std::string_view path) {
  std::string text = std::filesystem::path(path).lexically_normal().native();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_of_controller(std::string_view path) {
  return std::any_of(kControllerPaths.begin(), kControllerPaths.end(),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

class ConfigMaker {
 public:
  ConfigMaker(const Json& pod, const Sources& sources, const PodContext& place,
              const NodeFacts& node)
      : pod_(pod), sources_(sources), place_(place), node_(node) {}

  Result<PodConfig> make() {
    const Json& spec = pod_.get("spec");
    if (spec.get_bool("hostPID"))
      return refuse("spec.hostPID", "pods of local mode have their own process numbers: remove it");
    config_.ns = place_.name.ns;
    config_.name = pod_.get("metadata").get_string("name");
    config_.uid = pod_.get("metadata").get_string("uid");
    config_.hostname = place_.name.hostname;
    config_.tier = node_.tier;
    if (node_.tier != Tier::kPlain && !is_on_host_network(pod_))
      config_.address = place_.facts.pod_address;
    config_.has_network = node_.has_network && !config_.address.empty();
    config_.restart_policy = spec.get_string("restartPolicy", "Always");
    find_user(spec);
    if (auto added = add_memory_volumes(spec); !added) return tl::unexpected(added.error());
    for (const auto& [list, containers] : {std::pair("initContainers", &config_.init_containers),
                                           std::pair("containers", &config_.containers)}) {
      std::size_t index = 0;
      for (const Json& container : spec.get_array(list)) {
        auto made = make_container(container, fmt::format("spec.{}[{}]", list, index++));
        if (!made) return tl::unexpected(made.error());
        containers->push_back(std::move(*made));
      }
    }
    return std::move(config_);
  }

 private:
  // All containers of a pod have one user: the first that is stated.
  void find_user(const Json& spec) {
    std::vector<const Json*> contexts;
    for (const Json& container : spec.get_array("containers"))
      contexts.push_back(&container.get("securityContext"));
    contexts.push_back(&spec.get("securityContext"));
    for (const Json* context : contexts) {
      const Json& user = context->get("runAsUser");
      const Json& group = context->get("runAsGroup");
      if (user.is_int() && !config_.run_as_user) config_.run_as_user = user.as_int();
      if (group.is_int() && !config_.run_as_group) config_.run_as_group = group.as_int();
    }
  }

  Result<void> add_memory_volumes(const Json& spec) {
    if (node_.tier != Tier::kNamespaces) return {};
    const auto folder = place_.volumes.pod / kVolumes;
    config_.memory_volumes.push_back({(folder / kSharedMemoryVolume).native()});
    for (const Json& volume : spec.get_array("volumes")) {
      const Json& empty = volume.get("emptyDir");
      if (empty.get_string("medium") != "Memory") continue;
      const auto size = kube::Quantity::read(empty.get("sizeLimit"));
      const auto path = child_of(folder, volume.get_string("name"));
      if (!path) return tl::unexpected(path.error().at("spec.volumes"));
      config_.memory_volumes.push_back({path->native(), size ? size->value() : 0});
    }
    return {};
  }

  Result<ContainerConfig> make_container(const Json& container, const std::string& field) {
    if (auto checked = check_container(container, field); !checked)
      return tl::unexpected(checked.error());
    ContainerConfig made;
    made.name = container.get_string("name");
    // The container's log and its last message are files of this name.
    if (const auto named = child_of(place_.volumes.pod, made.name); !named)
      return tl::unexpected(named.error().at(field + ".name"));
    made.image = container.get_string("image");
    made.has_logs_for_message =
        container.get_string("terminationMessagePolicy") == "FallbackToLogsOnError";
    made.working_dir = container.get_string("workingDir", node_.working_dir);
    moved_.clear();
    const auto declared = declared_env(pod_, container, sources_, place_.facts);
    if (!declared) return tl::unexpected(declared.error().at(field));
    if (node_.tier == Tier::kPorts && is_elastic(*declared))
      return refuse(field,
                    "a job whose number of nodes changes (elasticPolicy) needs pods with names of "
                    "their own, which tier 2 does not have: write equal minNodes and maxNodes, or "
                    "see `trainer local status` for what tier 1 needs");
    if (auto added = add_mounts(container, *declared, field, made); !added)
      return tl::unexpected(added.error());
    const Replacements words = words_for(made);
    for (const char* list : {"command", "args"})
      for (const Json& word : container.get_array(list))
        made.argv.push_back(replace_words(expand(word.as_string(), *declared), words));
    for (const auto& [name, value] : environment_of(*declared))
      made.env.push_back(name + "=" + replace_words(value, words));
    return made;
  }

  Replacements words_for(const ContainerConfig& made) const {
    if (node_.tier == Tier::kNamespaces) return {};
    Replacements words = place_.names;
    words.insert(moved_.begin(), moved_.end());
    words[made.termination_path] = termination_file(place_.volumes.pod, made.name).native();
    return words;
  }

  // Only the dynamic rendezvous takes a range of nodes.
  static bool is_elastic(const kube::StringMap& variables) {
    const auto nodes = variables.find("PET_NNODES");
    if (nodes == variables.end()) return false;
    const std::string_view range = nodes->second;
    const std::size_t colon = range.find(':');
    return colon != range.npos && range.substr(0, colon) != range.substr(colon + 1);
  }

  // torchrun's dynamic rendezvous makes the store of the processes where index 0 is by the name of
  // its host. Here that is the machine's, which does not lead to the address of the pod. The static
  // one takes PET_MASTER_ADDR, and restarts processes, too.
  static void use_static_rendezvous(kube::StringMap& variables) {
    const auto backend = variables.find("PET_RDZV_BACKEND");
    if (backend == variables.end() || backend->second != "c10d") return;
    for (const char* name : {"PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_CONF"})
      variables.erase(name);
  }

  kube::StringMap environment_of(const kube::StringMap& declared) const {
    kube::StringMap all = node_.environment;
    all["HOSTNAME"] = place_.name.hostname;
    // A pod has its own installed packages. pip refuses --user together with the option, and the
    // SDK then tries without it.
    const std::string packages = (place_.volumes.pod / kScratch / ".packages").native();
    all["PIP_TARGET"] = packages;
    for (const auto& [name, value] : declared) all[name] = value;
    if (node_.tier == Tier::kPorts) use_static_rendezvous(all);
    std::string& path = all["PYTHONPATH"];
    path += (path.empty() ? "" : ":") + packages;
    all[std::string(kPodMarker)] = config_.uid;
    return all;
  }

  Result<void> add_mounts(const Json& container, const kube::StringMap& declared,
                          const std::string& field, ContainerConfig& made) {
    made.termination_path =
        normal(container.get_string("terminationMessagePath", kTerminationPath));
    if (node_.tier == Tier::kNamespaces) add_own_files(made);
    std::size_t index = 0;
    for (const Json& mount : container.get_array("volumeMounts")) {
      const std::string at = fmt::format("{}.volumeMounts[{}]", field, index++);
      if (auto added = add_mount(mount, declared, at, made); !added) return added;
    }
    for (const Mount& mount : node_.mounts)
      if (auto put = put_mount(mount, "--mount", made); !put) return put;
    return {};
  }

  void add_own_files(ContainerConfig& made) const {
    const auto& folder = place_.volumes.pod;
    made.mounts = {
        {folder / kHostsFile, "/etc/hosts", false},
        {folder / kNsswitchFile, "/etc/nsswitch.conf", false},
        {folder / kVolumes / kSharedMemoryVolume, kSharedMemory, false},
        {termination_file(folder, made.name), made.termination_path, false},
    };
  }

  Result<void> add_mount(const Json& value, const kube::StringMap& declared,
                         const std::string& field, ContainerConfig& made) {
    const Json* volume = find_volume(pod_, value.get_string("name"));
    if (volume == nullptr)
      return refuse(field, fmt::format("there is no volume \"{}\"", value.get_string("name")));
    const auto source = source_of(pod_, *volume, place_.volumes);
    if (!source) return tl::unexpected(source.error());
    Mount mount{*source, normal(value.get_string("mountPath")), value.get_bool("readOnly")};
    std::string below(value.get_string("subPath"));
    if (below.empty()) below = expand(value.get_string("subPathExpr"), declared);
    const auto inside = path_below("", below);
    if (!inside) return tl::unexpected(inside.error().at(field + ".subPath"));
    mount.sub_path = inside->native();
    // Processes of a machine share the machine's memory, unless pods have their own.
    if (node_.tier != Tier::kNamespaces && mount.target == kSharedMemory && is_empty_dir(*volume))
      return {};
    return put_mount(std::move(mount), field, made);
  }

  // If two mounts have one path, the later one counts.
  Result<void> put_mount(Mount mount, const std::string& field, ContainerConfig& made) {
    if (node_.tier != Tier::kNamespaces) {
      const auto source = normal((std::filesystem::path(mount.source) / mount.sub_path).native());
      if (source == mount.target) return {};
      if (is_of_controller(mount.target)) {
        moved_[mount.target] = source;
        return {};
      }
      return refuse(field,
                    fmt::format("{} cannot be mounted, for this machine has no user namespaces "
                                "({}): use hostPath with the same path on both sides",
                                mount.target, node_.tier_problem));
    }
    std::erase_if(made.mounts, [&mount](const Mount& each) { return each.target == mount.target; });
    made.mounts.push_back(std::move(mount));
    return {};
  }

  const Json& pod_;
  const Sources& sources_;
  const PodContext& place_;
  const NodeFacts& node_;
  PodConfig config_;
  Replacements moved_;  // paths of the container's mounts -> where these are instead
};

}  // namespace

bool is_on_host_network(const Json& pod) {
  return pod.get("spec").get_bool("hostNetwork");
}

Result<PodConfig> make_config(const Json& pod, const Sources& sources, const PodContext& place,
                              const NodeFacts& node) {
  return ConfigMaker(pod, sources, place, node).make();
}

}  // namespace trainer::node
