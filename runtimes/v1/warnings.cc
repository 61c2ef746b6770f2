// Admission warns about jobs that upstream admits, and that will not do what they say.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kube/model/check_items.hh"
#include "kube/model/pod_checks.hh"
#include "runtimes/lifecycle/pod_warnings.hh"
#include "runtimes/v1/policies.hh"
#include "runtimes/v1/validate.hh"

namespace trainer::v1 {
namespace {

using kube::Json;
using Warnings = std::vector<std::string>;

void warn_about_policy(const V1Job& job, Warnings& out) {
  const RunPolicy& policy = job.spec.runPolicy;
  const std::string_view clean = clean_pod_policy(job.spec);
  if (clean != "None" && clean != "Running" && clean != "All")
    out.push_back(fmt::format(
        "{}: \"{}\" counts as All, so all pods are deleted with their logs when the job ends; "
        "write "
        "None, Running or All",
        policy.cleanPodPolicy ? "spec.runPolicy.cleanPodPolicy" : "spec.cleanPodPolicy", clean));
  const auto warn_below_0 = [&out](std::string_view name, auto value) {
    if (value && *value < 0)
      out.push_back(fmt::format(
          "spec.runPolicy.{}: {} is less than 0 and is reached at once; leave it out for no limit",
          name, *value));
  };
  warn_below_0("activeDeadlineSeconds", policy.activeDeadlineSeconds);
  warn_below_0("backoffLimit", policy.backoffLimit);
  warn_below_0("ttlSecondsAfterFinished", policy.ttlSecondsAfterFinished);
  if (policy.schedulingPolicy)
    warn_about_gang_size(policy.schedulingPolicy->minAvailable, total_replicas(job), out);
}

// A pod of a TFJob names all pods of the job, and a pod of each role is built. If there are more
// names than this, a pod of a smaller job is built, whose variables have the same names.
constexpr std::int64_t kMaxSampledNames = 100'000;

V1Job smaller(const Framework& framework, V1Job job) {
  std::erase_if(job.spec.replicaSpecs,
                [&framework](const auto& spec) { return !framework.knows(spec.first); });
  for (auto& [role, spec] : job.spec.replicaSpecs)
    spec.replicas = std::min(spec.replicas.value_or(1), 2);
  return job;
}

// `sample` is the job, or a smaller one.
void warn_about_role(const Framework& framework, const V1Job& sample, const std::string& role,
                     const ReplicaSpec& spec, const Settings& settings, Warnings& out) {
  const std::string path = role_path(framework, role);
  if (spec.replicas.value_or(1) < 0)
    out.push_back(fmt::format("{}.replicas: {} counts as 0", path, *spec.replicas));
  kube::FieldErrors errors;
  if (!spec.restartPolicy.empty()) {
    const Json policy = Json::object({{"restartPolicy", spec.restartPolicy}});
    kube::check_word(policy, "restartPolicy", path, {"Always", "ExitCode", "Never", "OnFailure"},
                     errors);
  }
  const Json pod = make_pod(framework, sample, spec, {role, 0}, settings);
  for (kube::FieldError& error : errors_of_pods(spec.template_, pod, path))
    errors.push_back(std::move(error));
  if (!errors.empty())
    out.push_back(
        fmt::format("the API server will refuse pods of this job: {}", kube::to_string(errors)));
  const std::string pod_path = path + ".template.spec";
  const Json& pod_spec = spec.template_.get("spec");
  const std::string_view policy = spec.restartPolicy;
  warn_about_restart_policy(spec.template_, policy == "ExitCode" ? "Never" : policy, path, out);
  const std::string_view dns = pod_spec.get_string("dnsPolicy");
  if (pod_spec.get_bool("hostNetwork") && dns != "ClusterFirstWithHostNet" && dns != "None" &&
      framework.has_services)
    out.push_back(
        fmt::format("{}.hostNetwork: without dnsPolicy ClusterFirstWithHostNet the pods "
                    "cannot resolve each other's names",
                    pod_path));
  warn_about_commands(spec.template_, path, out);
  warn_about_replaced_variables(spec.template_, pod, path, out);
}

}  // namespace

std::vector<std::string> warnings_of(const Framework& framework, const V1Job& sent,
                                     const Settings& settings) {
  const V1Job job = with_defaults(framework, sent);
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
  const std::optional<V1Job> reduced =
      is_sampled ? std::nullopt : std::optional(smaller(framework, job));
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (out.size() < kube::kMaxWarnings)
      warn_about_role(framework, reduced ? *reduced : job, role, spec, settings, out);
  if (framework.warn) framework.warn(job, out);
  return out;
}

}  // namespace trainer::v1
