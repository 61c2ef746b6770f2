// What a user learns at admission about a job that upstream admits, and that will not do what it
// says.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kube/model/check_items.hh"
#include "kube/model/pod_checks.hh"
#include "runtimes/v1/policies.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1 {
namespace {

using kube::Json;
using Warnings = std::vector<std::string>;

void warn_about_policy(const Job& job, Warnings& out) {
  const RunPolicy& policy = job.spec.runPolicy;
  const std::string_view clean = clean_pod_policy(job.spec);
  if (clean != "None" && clean != "Running" && clean != "All")
    out.push_back(fmt::format(
        "spec.runPolicy.cleanPodPolicy: \"{}\" counts as All, so all pods are deleted with their "
        "logs when the job ends; write None, Running or All",
        clean));
  const auto warn_below_0 = [&out](std::string_view name, auto value) {
    if (value && *value < 0)
      out.push_back(fmt::format(
          "spec.runPolicy.{}: {} is less than 0 and is reached at once; leave it out for no limit",
          name, *value));
  };
  warn_below_0("activeDeadlineSeconds", policy.activeDeadlineSeconds);
  warn_below_0("backoffLimit", policy.backoffLimit);
  warn_below_0("ttlSecondsAfterFinished", policy.ttlSecondsAfterFinished);
  const auto least = policy.schedulingPolicy ? policy.schedulingPolicy->minAvailable : std::nullopt;
  if (least && *least > total_replicas(job))
    out.push_back(fmt::format(
        "spec.runPolicy.schedulingPolicy.minAvailable: a gang scheduler waits for {} pods, and "
        "this job has {}; leave it out for all of them",
        *least, total_replicas(job)));
}

// make_pod() looks for a container by its name, and adds the same variables to each of some kinds:
// admission may not cost the square of what a user sends.
constexpr std::size_t kMaxSampled = 16;  // containers
// Nor what a pod costs that names all pods of the job, for each role of a TFJob.
constexpr std::int64_t kMaxSampledNames = 100'000;

// One word that should have been several: no machine has a program of this name.
void warn_about_command(const Json& container, const std::string& path, Warnings& out) {
  const Json::Array& command = container.get_array("command");
  if (command.empty() || !command[0].is_string()) return;
  if (auto warning = kube::several_words_in_one(command[0].as_string()))
    out.push_back(fmt::format("{}.command[0]: {}", path, *warning));
}

// What the controller sets comes after it, and the last value counts.
void warn_about_env(const Json& before, const Json& after, const std::string& path, Warnings& out) {
  const Json::Array& own = before.get_array("env");
  const Json::Array& all = after.get_array("env");
  std::map<std::string_view, const Json*> added;
  for (std::size_t i = own.size(); i < all.size(); ++i) added[all[i].get_string("name")] = &all[i];
  for (const Json& variable : own) {
    const auto at = added.find(variable.get_string("name"));
    if (at == added.end() || *at->second == variable || out.size() >= kube::kMaxWarnings) continue;
    out.push_back(
        fmt::format("{}.env: {} has no effect, because the controller sets it; leave it "
                    "out",
                    path, at->first));
  }
}

void warn_about_role(const Framework& framework, const Job& job, const std::string& role,
                     const ReplicaSpec& spec, bool is_sampled, Warnings& out) {
  const std::string path = role_path(framework, role);
  if (spec.replicas.value_or(1) < 0)
    out.push_back(fmt::format("{}.replicas: {} counts as 0", path, *spec.replicas));
  kube::FieldErrors errors;
  if (!spec.restartPolicy.empty()) {
    const Json policy = Json::object({{"restartPolicy", spec.restartPolicy}});
    kube::check_word(policy, "restartPolicy", path, {"Always", "ExitCode", "Never", "OnFailure"},
                     errors);
  }
  Json pods = spec.template_;
  // make_pod() sets it.
  if (Json* own = pods.find("spec"); own != nullptr && own->is_object())
    own->erase("restartPolicy");
  kube::check_pod_template(pods, path + ".template", errors);
  if (!errors.empty())
    out.push_back(
        fmt::format("the API server will refuse pods of this job: {}", kube::to_string(errors)));
  const std::string pod_path = path + ".template.spec";
  const Json& pod_spec = spec.template_.get("spec");
  const std::string_view policy = spec.restartPolicy;
  const std::string_view of_pods = policy == "ExitCode" ? std::string_view("Never") : policy;
  const std::string_view ignored = pod_spec.get_string("restartPolicy");
  if (!ignored.empty() && ignored != of_pods)
    out.push_back(
        fmt::format("{}.restartPolicy: {} has no effect, and pods have {}: set {}.restartPolicy",
                    pod_path, ignored, of_pods, path));
  const std::string_view dns = pod_spec.get_string("dnsPolicy");
  if (pod_spec.get_bool("hostNetwork") && dns != "ClusterFirstWithHostNet" && dns != "None" &&
      framework.has_services)
    out.push_back(
        fmt::format("{}.hostNetwork: without dnsPolicy ClusterFirstWithHostNet the pods "
                    "cannot resolve each other's names",
                    pod_path));
  const Json::Array& before = pod_spec.get_array("containers");
  if (!is_sampled || before.size() > kMaxSampled) return;
  const Json pod = make_pod(framework, job, spec, {role, 0}, Settings());
  const Json::Array& after = pod.get("spec").get_array("containers");
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const std::string at = kube::join_index(pod_path + ".containers", i);
    warn_about_command(before[i], at, out);
    warn_about_env(before[i], after[i], at, out);
  }
}

}  // namespace

std::vector<std::string> warnings_of(const Framework& framework, const Job& sent) {
  const Job job = with_defaults(framework, sent);
  Warnings out;
  warn_about_policy(job, out);
  for (const std::string& role : repeated_roles(framework, sent.spec.replicaSpecs))
    if (out.size() < kube::kMaxWarnings)
      out.push_back(fmt::format(
          "{}: another role has this name in other letters, and only one of them counts: leave "
          "this one out",
          role_path(framework, role)));
  const std::int64_t roles = std::ssize(job.spec.replicaSpecs);
  const bool is_sampled = (total_replicas(job) + roles) * roles <= kMaxSampledNames;
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (out.size() < kube::kMaxWarnings)
      warn_about_role(framework, job, role, spec, is_sampled, out);
  if (framework.warn) framework.warn(job, out);
  return out;
}

}  // namespace trainer::v1
