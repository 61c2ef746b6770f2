// TFJob (pkg/controller.v1/tensorflow).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/v1/frameworks/support.hh"

namespace trainer::v1::tensorflow {

extern const Framework kTFJob;

namespace {

using kube::Json;

constexpr std::string_view kChief = "Chief";
constexpr std::string_view kPS = "PS";
constexpr std::string_view kConfig = "TF_CONFIG";
// This is the order of upstream's status.
constexpr std::array kRoles{kChief, std::string_view("Evaluator"), kMaster, kPS, kWorker};

bool has_chief(const V1Job& job) {
  return find_spec(job, kChief) || find_spec(job, kMaster);
}

bool is_chief(std::string_view role) {
  return role == kChief || role == kMaster;
}

bool is_master(const V1Job& job, const PodSlot& slot) {
  return has_chief(job) ? is_chief(slot.role) : slot.role == kWorker && slot.index == 0;
}

// A job with one process needs no cluster.
bool is_distributed(const V1Job& job) {
  std::int64_t total = 0;
  for (const std::string_view role : kRoles) total += replicas_of(job, role);
  return total != 1;
}

std::string address(const V1Job& job, std::string_view role, std::int32_t index,
                    const Settings& settings) {
  const std::string& domain = settings.cluster_domain;
  return fmt::format("{}.{}.svc{}{}:{}", host(job, role, index), job.metadata.ns,
                     domain.empty() ? "" : ".", domain, port_of(kTFJob, job, role));
}

Json addresses(const V1Job& job, std::string_view role, const Settings& settings) {
  if (!find_spec(job, role)) return nullptr;
  // The addresses differ from the first only in the number. There may be ten thousand, in each pod.
  const std::string first = address(job, role, 0, settings);
  const std::size_t number = host(job, role, 0).size() - 1;
  Json::Array all;
  for (std::int32_t i = 0; i < replicas_of(job, role); ++i)
    all.emplace_back(std::string(first).replace(number, 1, std::to_string(i)));
  return all;
}

// `addresses_of` is called for a role. The order of the members is upstream's.
template <class AddressesOf>
std::string whole_config(const V1Job& job, std::string_view task, AddressesOf&& addresses_of) {
  Json::Object::Members members;
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    members.emplace_back(to_lower(role), addresses_of(role));
  const Json cluster = Json::Object::of(std::move(members));
  return fmt::format(R"({{"cluster":{},"task":{},"environment":"cloud"}})",
                     kube::print_json(cluster), task);
}

// With dynamic workers a pod only knows itself and the pods that it must reach.
std::string sparse_config(const V1Job& job, const PodSlot& slot, const Settings& settings,
                          std::string_view task, bool without_servers = false) {
  Json workers = Json::object();
  Json servers = Json::array();
  const std::string own = address(job, slot.role, slot.index, settings);
  if (slot.role == kPS) servers.push_back(own);
  if (slot.role == kWorker) {
    workers.set(std::to_string(slot.index), own);
    if (!without_servers || !find_spec(job, kPS)) servers = addresses(job, kPS, settings);
  }
  return fmt::format(R"({{"cluster":{{"worker":{},"ps":{}}},"task":{}}})",
                     kube::print_json(workers), kube::print_json(servers), task);
}

std::string task_of(const PodSlot& slot) {
  return fmt::format(R"({{"type":"{}","index":{}}})", to_lower(slot.role), slot.index);
}

void set_cluster_spec(const V1Job& job, const PodSlot& slot, const Settings& settings, Json& pod) {
  Json* container = kube::find_container(pod, kTFJob.container);
  if (!is_distributed(job) || container == nullptr) return;
  const std::string task = task_of(slot);
  Environment env;
  env.set(kConfig, job.spec.enableDynamicWorker
                       ? sparse_config(job, slot, settings, task)
                       : whole_config(job, task, [&](std::string_view role) {
                           return addresses(job, role, settings);
                         }));
  env.add_to(*container);
}

// The size is that of print_json(addresses()) without the brackets.
std::int64_t bytes_of_addresses(const V1Job& job, std::string_view role, const Settings& settings) {
  const std::int64_t count = replicas_of(job, role);
  if (count == 0) return 0;
  const std::string first = kube::print_json(Json(address(job, role, 0, settings)));
  return count * std::ssize(first) + further_digits(count) + count - 1;
}

// Measures the longest text of all pods.
std::vector<GeneratedText> measure(const V1Job& job, const Settings& settings) {
  if (!is_distributed(job)) return {};
  const bool is_sparse = job.spec.enableDynamicWorker;
  GeneratedText text;
  text.name = kConfig;
  text.path = fmt::format("spec.{}", kTFJob.replica_specs);
  std::int64_t lists = 0;
  std::int64_t own = 0;  // the bytes that differ between the pods
  for (const auto& [role, spec] : job.spec.replicaSpecs) {
    // In a sparse job, workers have the longest text: it lists the parameter servers.
    if (!is_sparse || (role == kPS && replicas_of(job, kWorker) > 0))
      lists += bytes_of_addresses(job, role, settings);
    const PodSlot last{role, std::max(replicas_of(job, role) - 1, 0)};
    const std::string task = task_of(last);
    own = std::max(own, is_sparse ? std::ssize(sparse_config(job, last, settings, task, true))
                                  : std::ssize(task));
  }
  const std::int64_t rest =
      is_sparse ? own : own + std::ssize(whole_config(job, "", [](auto) { return Json::array(); }));
  text.bytes = bytes_of_variable(kConfig, lists + rest);
  return {std::move(text)};
}

void check(const V1Job& job, kube::FieldErrors& errors, std::vector<std::string>&) {
  if (find_spec(job, kChief) && find_spec(job, kMaster))
    errors.push_back(
        kube::forbidden("spec.tfReplicaSpecs", "must not have more than 1 Chief or Master role"));
}

bool is_first_worker_done(const RoleState& role) {
  const V1PodView* first = role.pods.empty() ? nullptr : role.pods.front();
  return first && first->phase == "Succeeded" && first->exit_code_of(kTFJob.container) == 0;
}

bool has_final_failure(const RoleState& role) {
  return role.spec->restartPolicy == "Never" &&
         std::any_of(role.pods.begin(), role.pods.end(), [](const V1PodView* pod) {
           return pod && pod->phase == "Failed" && !pod->is_deleting;
         });
}

// A failed pod fails the job, unless the job is restarting, or workers are dynamic. Departure
// (docs/decisions/0056): a pod that never runs again fails the job also while other pods restart.
void decide_about_failure(V1JobContext& context, const RoleState& role,
                          const std::optional<JobCondition>& restarting) {
  if (restarting && !has_final_failure(role)) {
    context.set_condition(kRestarting, true, kRestarting, restarting->message);
    return;
  }
  if (context.job.spec.enableDynamicWorker && role.name == kWorker) return;
  fail(context,
       fmt::format("TFJob {} has failed because {} {} replica(s) failed.",
                   context.job.metadata.key().to_string(), role.counters.failed, role.name));
}

void update_status(V1JobContext& context) {
  const std::string job = "TFJob " + context.job.metadata.key().to_string();
  const bool chief_decides = has_chief(context.job);
  std::optional<JobCondition> restarting;
  for (const JobCondition& condition : context.status.conditions)
    if (condition.type == kRestarting) restarting = condition;
  for (const RoleState& role : context.roles) {
    if (!context.framework.knows(role.name)) continue;
    if (chief_decides ? is_chief(role.name) : role.name == kWorker) {
      const bool is_complete = role.replicas > 0 && role.counters.succeeded >= role.replicas;
      const bool is_done = !chief_decides && is_first_worker_done(role) &&
                           context.job.spec.successPolicy != "AllWorkers";
      if (is_complete || is_done) return succeed(context, job + " successfully completed.");
      if (role.counters.active > 0) set_running(context, job + " is running.");
    }
    if (role.counters.failed > 0) decide_about_failure(context, role, restarting);
  }
}

void warn(const V1Job& job, std::vector<std::string>& out) {
  if (const std::string& policy = job.spec.successPolicy; !policy.empty() && policy != "AllWorkers")
    out.push_back(fmt::format(
        "spec.successPolicy: \"{}\" counts as none; write AllWorkers, or leave it out", policy));
}

}  // namespace

const Framework kTFJob{
    .resource = {"kubeflow.org", "v1", "tfjobs", "TFJob", true},
    .singular = "tfjob",
    .name = "tensorflow",
    .replica_specs = "tfReplicaSpecs",
    .roles = {kRoles.begin(), kRoles.end()},
    .container = "tensorflow",
    .port_name = "tfjob-port",
    .port = 2222,
    .restart_policy = "Never",
    .has_closed_roles = false,
    .is_master = is_master,
    .check = check,
    .warn = warn,
    .set_cluster_spec = set_cluster_spec,
    .measure = measure,
    .update_status = update_status,
    .crd = {.members = {"successPolicy", "enableDynamicWorker"}},
};

}  // namespace trainer::v1::tensorflow
