#include "controller/cli/local_changes.hh"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "kube/model/quantity.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/pipeline/draft.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Quantity;

constexpr std::string_view kPatchManager = "trainer.kubeflow.org/local";
// A node needs at least this much. It gets less than it asks for if the machine is too small.
constexpr std::int64_t kLeastCpu = 1'000;                 // thousandths
constexpr std::int64_t kLeastMemory = 256LL * (1 << 20);  // bytes

const Json::Array& replicated_jobs(const Json& runtime) {
  return runtime.get_path({"spec", "template", "spec"}).get_array("replicatedJobs");
}

const Json* find_node_container(const Json& replicated_job) {
  const Json& pod = replicated_job.get_path({"template", "spec", "template", "spec"});
  for (const Json& container : pod.get_array("containers"))
    if (container.get_string("name") == pipeline::kNode) return &container;
  return nullptr;
}

// In thousandths of a CPU, bytes, devices.
std::int64_t units_of(std::string_view resource, const Json& amount) {
  auto quantity = Quantity::read(amount);
  if (!quantity) return 0;
  if (resource == "cpu") *quantity *= 1'000;
  return quantity->value();
}

Json amount_of(std::string_view resource, std::int64_t units) {
  if (resource == "cpu") {
    // Whole CPUs, unless there is less than one.
    return units >= kLeastCpu ? std::to_string(units / 1'000) : fmt::format("{}m", units);
  }
  if (resource == "memory") return fmt::format("{}Mi", units >> 20);
  return std::to_string(units);
}

struct Asked {
  std::int64_t units = 0;
  std::int64_t available = 0;
  // Below this amount a node cannot do anything.
  std::int64_t least(std::string_view resource) const {
    return resource == "cpu"      ? std::min(units, kLeastCpu)
           : resource == "memory" ? std::min(units, kLeastMemory)
                                  : 1;
  }
};

class Fitting {
 public:
  Fitting(Json& job, const Json& runtime, const Json& machine, std::vector<std::string>& lines)
      : trainer_(job["spec"]["trainer"]), machine_(machine), lines_(lines) {
    if (trainer_.is_null()) trainer_ = Json::object();
    for (const Json& replicated_job : replicated_jobs(runtime)) {
      const Json* container = find_node_container(replicated_job);
      if (container != nullptr) read(container->get("resources"));
    }
    // The job's amounts replace the runtime's, one by one.
    read(trainer_.get("resourcesPerNode"));
    nodes_ =
        trainer_.get_int("numNodes", runtime.get_path({"spec", "mlPolicy"}).get_int("numNodes", 1));
  }

  void cut() {
    cut_nodes();
    for (auto& [resource, asked] : asked_) cut_amount(resource, asked);
    cut_processes();
  }

 private:
  // A request counts, else a limit.
  void read(const Json& resources) {
    for (const std::string_view kind : {"limits", "requests"}) {
      for (const auto& [name, amount] : resources.get_object(kind)) {
        asked_[name] = {units_of(name, amount), units_of(name, machine_.get(name))};
        kinds_[name].insert(kind);
      }
    }
  }

  void cut_nodes() {
    std::int64_t most = nodes_;
    for (const auto& [resource, asked] : asked_) {
      if (asked.units <= 0 || asked.available <= 0) continue;
      most = std::min(most, asked.available / std::max<std::int64_t>(1, asked.least(resource)));
    }
    most = std::max<std::int64_t>(1, most);
    if (most == nodes_) return;
    lines_.push_back(fmt::format("nodes: {} -> {}", nodes_, most));
    nodes_ = most;
    trainer_.set("numNodes", nodes_);
  }

  void cut_amount(const std::string& resource, Asked& asked) {
    const std::int64_t share = asked.available / nodes_;
    if (asked.units <= share) return;
    const Json amount = amount_of(resource, share);
    lines_.push_back(fmt::format("{} per node: {} -> {}{}", resource,
                                 amount_of(resource, asked.units).as_string(), amount.as_string(),
                                 asked.available == 0 ? " (this machine has none)" : ""));
    for (const std::string_view kind : kinds_[resource])
      trainer_["resourcesPerNode"][kind].set(resource, amount);
    if (pipeline::is_accelerator(resource, {})) is_accelerator_cut_ = true;
    asked.units = share;
  }

  // There is one process for each device; without devices, there is one for each CPU.
  void cut_processes() {
    const std::int64_t processes = trainer_.get_int("numProcPerNode", 0);
    if (!is_accelerator_cut_ || processes == 0) return;
    std::int64_t most = 0;
    for (const auto& [resource, asked] : asked_)
      if (pipeline::is_accelerator(resource, {})) most += asked.units;
    if (most == 0) most = units_of("cpu", machine_.get("cpu")) / 1'000 / nodes_;
    most = std::max<std::int64_t>(1, most);
    if (processes <= most) return;
    lines_.push_back(fmt::format("processes per node: {} -> {}", processes, most));
    trainer_.set("numProcPerNode", most);
  }

  Json& trainer_;
  const Json& machine_;
  std::vector<std::string>& lines_;
  std::map<std::string, Asked> asked_;  // per node, by resource
  std::map<std::string, std::set<std::string_view>>
      kinds_;  // limits and requests that have a value
  std::int64_t nodes_ = 1;
  bool is_accelerator_cut_ = false;
};

void add_mounts(Json& job, const Json& runtime, const std::vector<LocalMount>& mounts,
                std::vector<std::string>& lines) {
  Json volumes = Json::array();
  Json volume_mounts = Json::array();
  for (const LocalMount& mount : mounts) {
    const std::string name = fmt::format("local-mount-{}", volumes.size());
    volumes.push_back(
        Json::object({{"name", name}, {"hostPath", Json::object({{"path", mount.source}})}}));
    volume_mounts.push_back(Json::object({{"name", name}, {"mountPath", mount.target}}));
    lines.push_back(fmt::format("{} is {}", mount.target, mount.source));
  }
  const Json pod = Json::object(
      {{"volumes", volumes},
       {"containers", Json::array({Json::object({{"name", std::string(pipeline::kNode)},
                                                 {"volumeMounts", volume_mounts}})})}});
  Json jobs = Json::array();
  for (const Json& replicated_job : replicated_jobs(runtime)) {
    if (find_node_container(replicated_job) == nullptr) continue;
    Json patch = Json::object({{"name", std::string(replicated_job.get_string("name"))}});
    patch["template"]["spec"]["template"].set("spec", pod);
    jobs.push_back(std::move(patch));
  }
  Json patch = Json::object({{"manager", std::string(kPatchManager)}});
  patch["trainingRuntimeSpec"]["template"]["spec"].set("replicatedJobs", std::move(jobs));
  job["spec"]["runtimePatches"].push_back(std::move(patch));
}

// A path that the job sets itself stays.
void set_path(Json& job, const std::string& path) {
  Json& env = job["spec"]["trainer"]["env"];
  if (env.is_array() &&
      std::any_of(env.as_array().begin(), env.as_array().end(),
                  [](const Json& item) { return item.get_string("name") == "PATH"; }))
    return;
  env.push_back(Json::object({{"name", "PATH"}, {"value", path}}));
}

}  // namespace

kube::Result<LocalMount> parse_mount(std::string_view text, std::string_view working_directory) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !text.substr(colon + 1).starts_with('/')) {
    return kube::fail(kube::ErrorCode::kInvalid,
                      "--mount {}: write DIR:/PATH, the directory of this machine first", text);
  }
  const std::string_view target = text.substr(colon + 1);
  if (target.find_first_not_of('/') == std::string_view::npos) {
    return kube::fail(kube::ErrorCode::kInvalid,
                      "--mount {}: the root of a pod cannot be replaced: write a path below /",
                      text);
  }
  const std::filesystem::path source =
      std::filesystem::path(working_directory) / text.substr(0, colon);
  std::string normal = source.lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return LocalMount{std::move(normal), std::string(target)};
}

std::vector<std::string> change_for_local(Json& job, const Json& runtime, const Json& machine,
                                          const LocalChanges& changes) {
  std::vector<std::string> lines;
  const auto set = [&job, &lines](const char* field, std::optional<std::int32_t> count) {
    if (!count) return;
    job["spec"]["trainer"].set(field, *count);
    lines.push_back(fmt::format("{}: {}", field, *count));
  };
  set("numNodes", changes.nodes);
  set("numProcPerNode", changes.procs);
  if (!changes.mounts.empty()) add_mounts(job, runtime, changes.mounts, lines);
  if (!changes.path.empty()) set_path(job, changes.path);
  if (changes.is_fitted) Fitting(job, runtime, machine, lines).cut();
  return lines;
}

}  // namespace trainer
