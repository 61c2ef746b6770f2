// A new JobSet is refused for these errors in its replicated jobs: JobSet,
// pkg/webhooks/jobset_webhook.go.
#include <fmt/format.h>

#include <limits>
#include <set>

#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/policies.hh"
#include "runtimes/jobset/validation.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

void check_size(ValidatedJobSet& checked, const ReplicatedJob& job) {
  const std::int64_t replicas = job.replica_count();
  const std::int64_t parallelism = job_number(job, "parallelism").value_or(1);
  // The schema refuses a parallelism beyond 32 bits. Here only the product must not overflow.
  const bool is_large = parallelism > kMaxInt32 || parallelism < -kMaxInt32 - 1;
  if (!is_large && parallelism * replicas <= kMaxInt32) return;
  checked.refuse(
      "the product of replicas and parallelism must not exceed {} for replicatedJob '{}'",
      kMaxInt32, job.name);
}

void check_names(ValidatedJobSet& checked, const ReplicatedJob& job, const std::string& path) {
  const std::string group = job.groupName.value_or("default");
  checked.check_generated(
      kube::join_field(path, "groupName"), group,
      ".spec.replicatedJob[].groupName is too long, must be less than 63 characters");
  const std::string last_job =
      job_name(checked.name, job.name, std::int64_t{job.replica_count()} - 1);
  const std::string name_path = kube::join_field(path, "name");
  checked.check_generated(
      name_path, last_job,
      "JobSet name is too long, job names generated for this JobSet will exceed 63 characters");
  const auto completions = job_number(job, "completions");
  if (!is_indexed(job) || !completions) return;
  // The Job controller appends the index and five characters.
  checked.check_generated(
      name_path, last_job, fmt::format("{}-{}-abcde", last_job, *completions - 1),
      "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters");
}

void check_dependencies(ValidatedJobSet& checked, const ReplicatedJob& job,
                        const std::set<std::string_view>& before) {
  for (const DependsOn& dependency : job.dependsOn) {
    if (before.contains(dependency.name)) continue;
    checked.refuse("replicatedJob: {} cannot depend on replicatedJob: {}", job.name,
                   dependency.name);
  }
}

void check_in_place(ValidatedJobSet& checked, const ReplicatedJob& job, const std::string& path) {
  const Json& spec = job_spec_of(job);
  const auto refuse = [&](std::string_view name, std::string_view what) {
    checked.invalid(fmt::format("{}.template.spec.{}", path, name), spec.get(name),
                    "replicatedJob {}: {}", job.name, what);
  };
  if (spec.get("backoffLimit") != Json(kMaxInt32)) {
    refuse("backoffLimit", "must be set to 2147483647 (MaxInt32) when in-place restart is enabled");
  }
  if (spec.get("podReplacementPolicy") != Json("Failed")) {
    refuse("podReplacementPolicy", "must be set to Failed when in-place restart is enabled");
  }
  const auto completions = job_number(job, "completions");
  if (!completions || completions != job_number(job, "parallelism")) {
    refuse("completions",
           "completions and parallelism must be set and equal to each other when in-place restart "
           "is enabled");
  }
}

}  // namespace

void check_replicated_jobs(ValidatedJobSet& checked) {
  std::set<std::string_view> before;
  std::size_t index = 0;
  for (const ReplicatedJob& job : checked.jobset.spec.replicatedJobs) {
    const std::string path = kube::join_index("spec.replicatedJobs", index++);
    check_size(checked, job);
    check_names(checked, job, path);
    check_dependencies(checked, job, before);
    if (restarts_in_place(checked.jobset, checked.gates)) check_in_place(checked, job, path);
    before.insert(job.name);
  }
}

}  // namespace trainer::jobset
