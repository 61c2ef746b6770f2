#include "runtimes/v1/validate.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/model/check_items.hh"
#include "kube/model/names.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/saturating.hh"
#include "runtimes/v1/policies.hh"

namespace trainer::v1 {
namespace {

using kube::FieldErrors;
using kube::Json;

constexpr std::size_t kLongestName = 63;  // the longest name of a Service, and of a label's value
constexpr std::string_view kMultiKueue = "kueue.x-k8s.io/multikueue";

void check_exec_sizes(const Framework& framework, const std::string& role, const ReplicaSpec& spec,
                      FieldErrors& errors) {
  if (errors.size() >= kube::kMaxErrors) return;
  for (const kube::LongExecString& one :
       kube::find_long_exec_strings(spec.template_.get("spec"), kube::kMaxErrors - errors.size())) {
    const std::string list =
        fmt::format("{}.template.spec.{}", role_path(framework, role), one.list);
    errors.push_back({kube::FieldError::Type::kTooLong,
                      fmt::format("{}.{}", kube::join_index(list, one.container), one.path()),
                      nullptr, one.text(fmt::format("container {}", one.name), "")});
  }
}

void check_role(const Framework& framework, const std::string& role, const ReplicaSpec& spec,
                FieldErrors& errors) {
  const std::string path = role_path(framework, role);
  if (framework.has_closed_roles && !framework.knows(role))
    errors.push_back(kube::not_supported(path, role, framework.roles));
  const std::string containers_path = path + ".template.spec.containers";
  const Json::Array& containers = spec.template_.get("spec").get_array("containers");
  if (containers.empty())
    return errors.push_back(kube::required(containers_path, "must be specified"));
  for (std::size_t i = 0; i < containers.size() && errors.size() < kube::kMaxErrors; ++i) {
    const std::string item = kube::join_index(containers_path, i);
    if (containers[i].get_string("image").empty())
      errors.push_back(kube::required(item + ".image", "must be required"));
    if (containers[i].get_string("name").empty())
      errors.push_back(kube::required(item + ".name", "must be required"));
  }
  if (!framework.container.empty() &&
      kube::find_container(spec.template_, framework.container) == nullptr)
    errors.push_back(kube::required(
        containers_path,
        fmt::format("must have at least one container with name {}", framework.container)));
}

// Returns the largest name of a pod of this role; an elastic job may grow.
std::string largest_name(const Framework& framework, const V1Job& job, const std::string& role,
                         const ReplicaSpec& spec) {
  std::int32_t replicas = spec.replicas.value_or(1);
  if (const auto& elastic = job.spec.elasticPolicy; elastic && role == "Worker")
    replicas = std::max(replicas, elastic->maxReplicas.value_or(0));
  return pod_name(job.metadata.name, framework, role, std::max(replicas, 1) - 1);
}

void check_name(const Framework& framework, const V1Job& job, FieldErrors& errors) {
  const std::string& name = job.metadata.name;
  if (const std::string problems = kube::check_dns1035_label(name); !problems.empty())
    errors.push_back(kube::invalid("metadata.name", name, "should match: " + problems));
  std::string longest;
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (std::string other = largest_name(framework, job, role, spec); other.size() > longest.size())
      longest = std::move(other);
  if (longest.size() <= kLongestName || name.size() > kLongestName) return;
  const std::size_t added = longest.size() - name.size();
  if (added >= kLongestName)
    return errors.push_back(kube::invalid(
        fmt::format("spec.{}", framework.replica_specs), longest,
        fmt::format("the pod and Service would have a name of {} characters, and {} fit: shorten "
                    "the name of the role",
                    longest.size(), kLongestName)));
  errors.push_back(kube::invalid(
      "metadata.name", name,
      fmt::format("must be no more than {} characters: the pod and Service {} would have a name of "
                  "{}, and {} fit",
                  kLongestName - added, longest, longest.size(), kLongestName)));
}

std::int64_t generated_bytes(const std::vector<GeneratedText>& texts, const ReplicaSpec& spec) {
  const auto containers = std::ssize(spec.template_.get("spec").get_array("containers"));
  std::int64_t bytes = 0;
  for (const GeneratedText& text : texts) {
    const std::int64_t times = text.is_in_each_container ? containers : 1;
    if (text.is_in_pods)
      bytes = kube::saturating_add(bytes, kube::saturating_multiply(text.bytes, times));
  }
  return bytes;
}

std::optional<kube::FieldError> too_much_text(const Framework& framework, const V1Job& job,
                                              const Settings& settings) {
  if (framework.measure == nullptr) return std::nullopt;
  const std::vector<GeneratedText> texts = framework.measure(job, settings);
  for (const GeneratedText& text : texts)
    if (text.bytes > text.limit)
      return kube::invalid(text.path, text.bytes,
                           "bytes in {}: at most {} are possible, since {}; set fewer replicas, or "
                           "shorter names and texts",
                           text.name, text.limit, text.why);
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (const std::int64_t bytes = generated_bytes(texts, spec); bytes > kMaxGeneratedBytes)
      return kube::invalid(
          role_path(framework, role) + ".template.spec.containers",
          std::int64_t{std::ssize(spec.template_.get("spec").get_array("containers"))},
          "containers: the variables that the controller adds to them would have {} bytes, and a "
          "pod takes {}; set fewer containers or replicas",
          bytes, kMaxGeneratedBytes);
  return std::nullopt;
}

}  // namespace

std::int64_t generated_bytes(const Framework& framework, const V1Job& job, const ReplicaSpec& spec,
                             const Settings& settings) {
  return framework.measure ? generated_bytes(framework.measure(job, settings), spec) : 0;
}

std::string role_path(const Framework& framework, std::string_view role) {
  return kube::join_key(fmt::format("spec.{}", framework.replica_specs), role);
}

std::optional<kube::FieldError> too_large(const Framework& framework, const V1Job& job,
                                          const Settings& settings) {
  const std::int64_t pods = total_replicas(job);
  if (pods > kMaxPods)
    return kube::invalid(
        fmt::format("spec.{}", framework.replica_specs), pods,
        "pods in all replicas: at most {} are possible; set fewer, or make several "
        "jobs",
        kMaxPods);
  const std::int64_t most =
      std::min(kMaxContainers, kMaxContainersTimesPods / std::max<std::int64_t>(pods, 1));
  for (const auto& [role, spec] : job.spec.replicaSpecs) {
    const auto containers = std::ssize(spec.template_.get("spec").get_array("containers"));
    if (containers > most)
      return kube::invalid(role_path(framework, role) + ".template.spec.containers",
                           std::int64_t{containers}, "containers: at most {} are possible", most);
  }
  return too_much_text(framework, job, settings);
}

Verdict validate_stored(const Framework& framework, const V1Job& job, const Settings& settings) {
  Verdict verdict;
  if (framework.has_services) check_name(framework, job, verdict.errors);
  const RunPolicy& policy = job.spec.runPolicy;
  if (policy.managedBy && *policy.managedBy != kManager && *policy.managedBy != kMultiKueue)
    verdict.errors.push_back(kube::not_supported("spec.runPolicy.managedBy", *policy.managedBy,
                                                 {kMultiKueue, kManager}));
  if (!policy.queue.empty())
    verdict.warnings.push_back(
        "spec.runPolicy.queue counts as spec.runPolicy.schedulingPolicy.queue; use that instead");
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    if (verdict.errors.size() < kube::kMaxErrors) check_role(framework, role, spec, verdict.errors);
  // The measured sizes follow from the defaults, too.
  if (auto error = verdict.errors.empty()
                       ? too_large(framework, with_defaults(framework, job), settings)
                       : too_large(framework, job, settings))
    verdict.errors.push_back(std::move(*error));
  if (framework.check) framework.check(job, verdict.errors, verdict.warnings);
  return verdict;
}

Verdict validate_create(const Framework& framework, const V1Job& job, const Settings& settings) {
  Verdict verdict = validate_stored(framework, job, settings);
  for (const auto& [role, spec] : job.spec.replicaSpecs)
    check_exec_sizes(framework, role, spec, verdict.errors);
  if (framework.check_new) framework.check_new(job, verdict.errors);
  return verdict;
}

Verdict validate_update(const Framework& framework, const V1Job& before, const V1Job& job,
                        const Settings& settings) {
  Verdict verdict = validate_create(framework, job, settings);
  if (!verdict.errors.empty())
    kube::erase_known(verdict.errors, validate_create(framework, before, settings).errors);
  if (before.spec.runPolicy.managedBy != job.spec.runPolicy.managedBy)
    verdict.errors.push_back(kube::invalid("spec.runPolicy.managedBy",
                                           job.spec.runPolicy.managedBy.value_or(""),
                                           "field is immutable; make a new job instead"));
  return verdict;
}

}  // namespace trainer::v1
