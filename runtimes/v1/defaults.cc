// Fills in what a spec does not say (pkg/apis/kubeflow.org/v1/*_defaults.go).
// The stored object stays as its user wrote it.
#include <algorithm>
#include <set>
#include <utility>

#include "kube/model/pod_template.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

using kube::Json;

// "worker" and "WORKER" mean the role Worker.
void use_canonical_roles(const Framework& framework, ReplicaSpecs& specs) {
  for (const std::string_view role : framework.roles) {
    const auto other = std::find_if(specs.begin(), specs.end(), [role](const auto& spec) {
      return spec.first != role && to_lower(spec.first) == to_lower(role);
    });
    if (other == specs.end()) continue;
    ReplicaSpec spec = std::move(other->second);
    specs.erase(other);
    specs.insert_or_assign(std::string(role), std::move(spec));
  }
}

void drop_repeated_roles(const Framework& framework, ReplicaSpecs& specs) {
  for (const std::string& role : repeated_roles(framework, specs)) specs.erase(role);
}

// The container that every role must have, else the first one.
void add_port(const Framework& framework, Json& pod_template) {
  Json* containers = pod_template["spec"].find("containers");
  if (containers == nullptr || !containers->is_array() || containers->empty()) return;
  Json* container = kube::find_container(pod_template, framework.container);
  if (container == nullptr) container = &containers->as_array().front();
  for (const Json& port : container->get_array("ports"))
    if (port.get_string("name") == framework.port_name) return;
  (*container)["ports"].push_back(Json::object(
      {{"name", framework.port_name}, {"containerPort", std::int64_t{framework.port}}}));
}

void use_queue(RunPolicy& policy) {
  if (policy.queue.empty()) return;
  if (!policy.schedulingPolicy) policy.schedulingPolicy.emplace();
  if (policy.schedulingPolicy->queue.empty()) policy.schedulingPolicy->queue = policy.queue;
}

void set_elastic_defaults(JobSpec& spec) {
  if (!spec.elasticPolicy) return;
  auto& least = spec.elasticPolicy->minReplicas;
  auto& most = spec.elasticPolicy->maxReplicas;
  if (const auto worker = spec.replicaSpecs.find("Worker");
      !least && !most && worker != spec.replicaSpecs.end())
    least = worker->second.replicas;
  if (!least) least = most;
  if (!most) most = least;
}

}  // namespace

std::vector<std::string> repeated_roles(const Framework& framework, const ReplicaSpecs& specs) {
  std::set<std::string> names;
  for (const std::string_view role : framework.roles)
    if (specs.contains(role)) names.insert(to_lower(role));
  std::vector<std::string> repeated;
  for (const auto& [role, spec] : specs)
    if (!framework.knows(role) && !names.insert(to_lower(role)).second) repeated.push_back(role);
  return repeated;
}

V1Job with_defaults(const Framework& framework, const V1Job& job) {
  V1Job out = job;
  use_canonical_roles(framework, out.spec.replicaSpecs);
  drop_repeated_roles(framework, out.spec.replicaSpecs);
  if (framework.set_defaults) framework.set_defaults(out);
  for (auto& [role, spec] : out.spec.replicaSpecs) {
    if (!spec.replicas) spec.replicas = 1;
    if (spec.restartPolicy.empty()) spec.restartPolicy = framework.restart_policy;
    if (!framework.port_name.empty()) add_port(framework, spec.template_);
  }
  use_queue(out.spec.runPolicy);
  set_elastic_defaults(out.spec);
  return out;
}

}  // namespace trainer::v1
