#include "runtimes/plugins/mpi/wait_for_hosts.hh"

#include <string>
#include <string_view>

#include "runtimes/jobset/names.hh"
#include "runtimes/plugins/mpi/implementation.hh"

namespace trainer::mpi {
namespace {

using kube::Json;

constexpr std::string_view kName = "wait-for-hosts";

// The arguments are the hostfile, and the subdomain of this pod, which is empty if the pod has the
// host name of its machine. The name of this pod must resolve to its own address, which is in
// /etc/hosts: after a restart DNS may still have that of the pod before it.
constexpr std::string_view kScript = R"SH(
command -v getent >/dev/null || exit 0
mine=$(getent hosts "$(uname -n)" | cut -d' ' -f1)
end=$(($(date +%s) + 120))
resolves() {
  if [ "$1" = "$own" ]; then getent hosts "$1" | grep -qwF "$mine"; else getent hosts "$1" >/dev/null; fi
}
own=${2:+$(uname -n).$2}
for host in $own $(sed 's/[ :].*//' "$1"); do
  until resolves "$host"; do
    if [ "$(date +%s)" -ge "$end" ]; then echo "$host does not resolve"; exit 0; fi
    sleep 0.2
  done
done
)SH";

// Returns the mount of the hostfile in a container, or nullptr.
const Json* hostfile_mount(const Json& container) {
  for (const Json& mount : container.get_array("volumeMounts"))
    if (mount.get_string("name") == pipeline::mpi::kHostfileVolume) return &mount;
  return nullptr;
}

const Json* container_with_hostfile(const Json& pod_spec) {
  for (const Json& container : pod_spec.get_array("containers"))
    if (hostfile_mount(container) != nullptr) return &container;
  return nullptr;
}

bool has_init_container(const Json& pod_spec, std::string_view name) {
  for (const Json& container : pod_spec.get_array("initContainers"))
    if (container.get_string("name") == name) return true;
  return false;
}

bool resolves_before_ready(const JobSet& jobset) {
  return jobset::has_dns_hostnames(jobset) &&
         jobset.spec.network->publishNotReadyAddresses.value_or(true);
}

Json waiting_container(const Json& launcher, std::string_view own_subdomain) {
  const Json& mount = *hostfile_mount(launcher);
  const std::string hostfile = std::string(mount.get_string("mountPath")) + "/hostfile";
  Json container = Json::object({{"name", kName}});
  // The launcher's image needs no further pull, and its resources do not raise the pod's request.
  for (const std::string_view member : {"image", "imagePullPolicy", "resources", "securityContext"})
    if (const Json* value = launcher.find(member)) container[member] = *value;
  container["command"] = Json::array({"sh", "-c", kScript, kName, hostfile, own_subdomain});
  container["volumeMounts"] = Json::array({mount});
  return container;
}

}  // namespace

void wait_for_hosts(Json& job, const JobSet& jobset) {
  Json& pod_spec = job["spec"]["template"]["spec"];
  const Json* launcher = container_with_hostfile(pod_spec);
  if (launcher == nullptr || !resolves_before_ready(jobset) || has_init_container(pod_spec, kName))
    return;
  // A pod on the host's network has the host name of its machine.
  const Json* shares_host = pod_spec.find("hostNetwork");
  const bool has_own_name = shares_host == nullptr || !(*shares_host == true);
  Json waiting = waiting_container(*launcher, has_own_name ? jobset::subdomain(jobset) : "");
  Json& init = pod_spec["initContainers"];
  if (!init.is_array()) init = Json::array();
  init.push_back(std::move(waiting));
}

}  // namespace trainer::mpi
