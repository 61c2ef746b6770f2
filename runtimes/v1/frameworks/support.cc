#include "runtimes/v1/frameworks/support.hh"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kube/model/exec_limits.hh"
#include "kube/model/pod_template.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1 {

using kube::Json;

Json::Array& containers_of(Json& pod) {
  return pod["spec"]["containers"].as_array();
}

void add_to_all_containers(const Environment& env, Json& pod) {
  for (Json& container : containers_of(pod)) env.add_to(container);
}

const ReplicaSpec* find_spec(const V1Job& job, std::string_view role) {
  const auto found = job.spec.replicaSpecs.find(role);
  return found == job.spec.replicaSpecs.end() ? nullptr : &found->second;
}

std::int32_t replicas_of(const V1Job& job, std::string_view role) {
  const ReplicaSpec* spec = find_spec(job, role);
  return spec ? std::max(spec->replicas.value_or(1), 0) : 0;
}

std::int64_t port_of(const Framework& framework, const V1Job& job, std::string_view role) {
  const ReplicaSpec* spec = find_spec(job, role);
  const Json* container =
      spec ? kube::find_container(spec->template_, framework.container) : nullptr;
  if (container)
    for (const Json& port : container->get_array("ports"))
      if (port.get_string("name") == framework.port_name) return port.get_int("containerPort");
  return framework.port;
}

std::string host(const V1Job& job, std::string_view role, std::int32_t index) {
  return fmt::format("{}-{}-{}", job.metadata.name, to_lower(role), index);
}

std::int64_t further_digits(std::int64_t count) {
  std::int64_t digits = 0;
  for (std::int64_t first = 10; first < count; first *= 10) {
    digits += count - first;
    if (first > std::numeric_limits<std::int64_t>::max() / 10) break;
  }
  return digits;
}

std::int64_t bytes_of_variable(std::string_view name, std::int64_t bytes) {
  return bytes + static_cast<std::int64_t>(kube::exec_bytes(name, ""));
}

std::string failure_text(const V1JobContext& context, const RoleState& role,
                         std::string_view what) {
  return fmt::format("{} {} is {} because {} {} replica(s) failed.",
                     context.framework.resource.kind, context.name(), what, role.counters.failed,
                     role.name);
}

void decide_by_master_or_workers(V1JobContext& context) {
  const std::string& kind = context.framework.resource.kind;
  const std::string& name = context.name();
  const std::string full = context.job.metadata.key().to_string();
  const bool has_master = context.find_role(kMaster) != nullptr;
  const bool takes_any = context.framework.any_worker_succeeds && context.job.spec.elasticPolicy;
  for (const RoleState& role : context.roles) {
    const auto& [active, succeeded, failed] =
        std::tie(role.counters.active, role.counters.succeeded, role.counters.failed);
    const bool is_complete = role.replicas > 0 && succeeded >= role.replicas;
    if (has_master && role.name == kMaster) {
      if (active > 0) set_running(context, fmt::format("{} {} is running.", kind, name));
      if (is_complete)
        return succeed(context, fmt::format("{} {} is successfully completed.", kind, name));
    } else if (!has_master && role.name == kWorker) {
      if (is_complete || (takes_any && succeeded > 0))
        return succeed(context, fmt::format("{} {} successfully completed.", kind, full));
      if (active > 0) set_running(context, fmt::format("{} {} is running.", kind, full));
    }
    if (failed == 0 || role.replicas <= succeeded + active) continue;
    if (role.spec->restartPolicy == "Never")
      fail(context, failure_text(context, role, "failed"));
    else
      set_restarting(context, failure_text(context, role, "restarting"));
  }
}

void decide_by_one_role(V1JobContext& context, std::string_view decider,
                        std::string_view failed_reason) {
  const std::string job = fmt::format("{} {}", context.framework.resource.kind, context.name());
  for (const RoleState& role : context.roles) {
    const bool is_complete = role.replicas > 0 && role.counters.succeeded >= role.replicas;
    if (role.name == decider) {
      if (role.counters.active > 0) set_running(context, job + " is running.");
      if (is_complete) return succeed(context, job + " is successfully completed.");
    }
    if (role.counters.failed == 0) continue;
    if (role.spec->restartPolicy == "ExitCode")
      set_restarting(context, failure_text(context, role, "restarting"));
    else
      fail(context, failure_text(context, role, "failed"), failed_reason);
  }
}

void check_single_master(const Framework& framework, const V1Job& job, kube::FieldErrors& errors) {
  const ReplicaSpec* master = find_spec(job, kMaster);
  if (master && master->replicas != 1)
    errors.push_back(kube::forbidden(role_path(framework, kMaster) + ".replicas", "must be 1"));
}

}  // namespace trainer::v1
