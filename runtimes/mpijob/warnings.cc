// Admission warns about jobs that mpi-operator accepts, and that will not do what they say.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "api/trainjob.hh"
#include "kube/model/check_items.hh"
#include "runtimes/lifecycle/pod_warnings.hh"
#include "runtimes/mpijob/context.hh"

namespace trainer::mpijob {
namespace {

using kube::Json;
using Warnings = std::vector<std::string>;

// mpi-operator leaves a job of any other manager alone without a word.
Warnings warnings_of_manager(std::string_view manager) {
  if (manager == kMultiKueueController) return {};
  return {fmt::format(
      "spec.runPolicy.managedBy: \"{}\" leaves this job to another controller; leave it out, or "
      "write {}",
      manager, kMPIManager)};
}

// The CRD has the members of v1 at v2beta1, too.
void warn_about_other_version(const v1::JobSpec& spec, Warnings& out) {
  if (!spec.mainContainer.empty())
    out.push_back(
        "spec.mainContainer: has no effect at kubeflow.org/v2beta1, where a launcher reaches the "
        "first container of a worker by SSH: put that container first");
  if (spec.cleanPodPolicy)
    out.push_back(
        "spec.cleanPodPolicy: has no effect at kubeflow.org/v2beta1: set "
        "spec.runPolicy.cleanPodPolicy");
}

void warn_about_policies(const v1::V1Job& job, Warnings& out) {
  const std::string& creation = job.spec.launcherCreationPolicy;
  if (creation != "AtStartup" && creation != "WaitForWorkersReady")
    out.push_back(fmt::format(
        "spec.launcherCreationPolicy: \"{}\" counts as WaitForWorkersReady; write that, or "
        "AtStartup",
        creation));
  if (const auto& scheduling = job.spec.runPolicy.schedulingPolicy)
    warn_about_gang_size(scheduling->minAvailable, std::int64_t{worker_count(job)} + 1, out);
}

// Returns whether one of the texts is in a word of the command line, or in the name of a variable.
bool mentions(const Json& container, std::initializer_list<std::string_view> texts) {
  const auto is_in = [&texts](std::string_view word) {
    return std::ranges::any_of(
        texts, [word](std::string_view text) { return word.find(text) != word.npos; });
  };
  for (const char* list : {"command", "args"})
    for (const Json& word : container.get_array(list))
      if (word.is_string() && is_in(word.as_string())) return true;
  return std::ranges::any_of(container.get_array("env"), [&is_in](const Json& variable) {
    return is_in(variable.get_string("name"));
  });
}

// OpenMPI 5 shows only where a job uses its names. Its runtime reads none of the variables that the
// controller sets for OpenMPI 4, and would start all processes in the launcher.
void warn_about_unread_hostfile(const v1::V1Job& job, Warnings& out) {
  const auto& containers = find_role(job, kLauncher)->template_.get("spec").get_array("containers");
  if (job.spec.mpiImplementation != "OpenMPI" ||
      !mentions(containers[0], {"prterun", "--prtemca", "PRTE_MCA_"}) ||
      mentions(containers[0], {"hostfile", "machinefile", "-host", "-H"}))
    return;
  out.push_back(fmt::format(
      "{}.template.spec.containers[0]: OpenMPI 5 does not read the hostfile by itself, and starts "
      "all processes in the launcher: add --hostfile /etc/mpi/hostfile to the command, or the "
      "variable PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
      role_path(kLauncher)));
}

// These members of the pod's spec have the controller's value.
void warn_about_replaced_members(const Json& pod_template, const Json& pod, const std::string& path,
                                 Warnings& out) {
  constexpr std::pair<std::string_view, std::string_view> kMembers[] = {
      {"hostname", "because hosts have the names of the hostfile; leave it out"},
      {"subdomain", "because hosts have the names of the job's Service; leave it out"},
      {"dnsPolicy",
       "because pods with hostNetwork resolve each other's names by ClusterFirstWithHostNet; "
       "leave it out"},
      {"schedulerName",
       "because the gang scheduler of the installation places the pods; leave it out"}};
  for (const auto& [member, reason] : kMembers) {
    const Json* const own = pod_template.get("spec").find(member);
    if (own && *own != pod.get("spec").get(member))
      out.push_back(fmt::format("{}.template.spec.{}: {} has no effect, {}", path, member,
                                own->is_string() ? own->as_string() : "this", reason));
  }
}

void warn_about_role(const v1::ReplicaSpec& role, const Json& pod, const std::string& path,
                     Warnings& out) {
  if (const kube::FieldErrors errors = errors_of_pods(role.template_, pod, path); !errors.empty())
    out.push_back(
        fmt::format("the API server will refuse pods of this job: {}", kube::to_string(errors)));
  warn_about_restart_policy(role.template_, role.restartPolicy, path, out);
  warn_about_replaced_members(role.template_, pod, path, out);
  warn_about_commands(role.template_, path, out);
  warn_about_replaced_variables(role.template_, pod, path, out);
}

}  // namespace

std::vector<std::string> warnings_of(const v1::V1Job& sent, const MPISettings& settings) {
  if (const auto& manager = sent.spec.runPolicy.managedBy; manager && *manager != kMPIManager)
    return warnings_of_manager(*manager);
  const v1::V1Job job = with_defaults(sent);
  if (const auto errors = validate_defaulted(job, settings); !errors.empty())
    return {"the controller creates nothing for this job until it is corrected: " +
            kube::to_string(errors)};
  Warnings out;
  warn_about_other_version(job.spec, out);
  warn_about_policies(job, out);
  warn_about_unread_hostfile(job, out);
  for (const auto& [role, spec] : job.spec.replicaSpecs) {
    if (out.size() >= kube::kMaxWarnings) break;
    const std::string path = role_path(role);
    if (role == kLauncher)
      warn_about_role(spec, make_launcher_template(job, settings), path, out);
    else if (role == kWorker)
      warn_about_role(spec, make_worker(job, 0, settings), path, out);
    else
      out.push_back(fmt::format(
          "{}: has no effect, because the roles of an MPIJob are Launcher and Worker; leave it "
          "out, or rename it",
          path));
  }
  return out;
}

}  // namespace trainer::mpijob
