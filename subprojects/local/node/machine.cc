#include "local/node/machine.hh"

#include <fmt/format.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <stdexcept>

#include "local/node/pod_runner.hh"

namespace trainer::node {

namespace {

using kube::Json;
using kube::Quantity;

int count_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool is_known = sched_getaffinity(0, sizeof set, &set) == 0;
  return std::max(is_known ? CPU_COUNT(&set) : get_nprocs(), 1);
}

std::int64_t memory_bytes() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return 0;
  return static_cast<std::int64_t>(info.totalram) * info.mem_unit;
}

std::string architecture() {
  utsname names{};
  uname(&names);
  const std::string machine = names.machine;
  return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine;
}

std::string kernel() {
  utsname names{};
  uname(&names);
  return names.release;
}

}  // namespace

kube::ResourceList capacity_of_machine(const std::map<std::string, std::string>& instead) {
  kube::ResourceList capacity;
  capacity["cpu"] = Quantity::of(count_cpus());
  capacity["memory"] = Quantity::of(memory_bytes(), Quantity::Format::kBinarySI);
  for (const auto& [name, amount] : instead) {
    const auto quantity = Quantity::parse(amount);
    if (!quantity)
      throw std::runtime_error(
          fmt::format("capacity {}={}: {}", name, amount, quantity.error().message));
    capacity[name] = *quantity;
  }
  return capacity;
}

Json node_labels(const std::string& name, Tier tier) {
  Json labels = Json::object({{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}});
  labels.set("kubernetes.io/arch", architecture());
  labels.set("trainer.kubeflow.org/shared-ports", tier == Tier::kPlain ? Json("true") : Json());
  return labels;
}

Json node_status(const std::string& name, const kube::ResourceList& capacity, kube::Time now) {
  Json amounts = Json::object();
  for (const auto& [resource, amount] : capacity) amounts.set(resource, amount.to_string());
  Json ready = Json::object({{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}});
  ready.set("message", "pods run as processes of this machine");
  ready.set("lastHeartbeatTime", now.to_string());
  ready.set("lastTransitionTime", now.to_string());
  Json addresses = Json::array({Json::object({{"type", "InternalIP"}, {"address", kHostAddress}})});
  addresses.push_back(Json::object({{"type", "Hostname"}, {"address", name}}));
  Json info = Json::object({{"architecture", architecture()}, {"operatingSystem", "linux"}});
  info.set("kernelVersion", kernel());
  info.set("kubeletVersion", "v" TRAINER_VERSION);
  info.set("containerRuntimeVersion", "trainer://" TRAINER_VERSION);
  for (const char* member : {"bootID", "machineID", "systemUUID", "osImage", "kubeProxyVersion"})
    info.set(member, "");
  Json status = Json::object({{"capacity", amounts}, {"allocatable", amounts}});
  status.set("conditions", Json::array({std::move(ready)}));
  status.set("addresses", std::move(addresses));
  status.set("nodeInfo", std::move(info));
  return status;
}

}  // namespace trainer::node
