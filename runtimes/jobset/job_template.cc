#include "runtimes/jobset/job_template.hh"

#include <algorithm>

namespace trainer::jobset {

using kube::Json;

const Json& job_spec_of(const ReplicatedJob& replicated_job) {
  return replicated_job.template_.get("spec");
}

const Json& pod_spec_of(const ReplicatedJob& replicated_job) {
  return replicated_job.template_.get_path({"spec", "template", "spec"});
}

std::optional<std::int64_t> job_number(const ReplicatedJob& replicated_job, std::string_view name) {
  const Json* value = job_spec_of(replicated_job).find(name);
  if (!value || !value->is_int()) return std::nullopt;
  return value->as_int();
}

bool is_indexed(const ReplicatedJob& replicated_job) {
  return job_spec_of(replicated_job).get_string("completionMode") == "Indexed";
}

bool mounts_volume(const Json& pod_spec, std::string_view name) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Json& container : pod_spec.get_array(list)) {
      const Json::Array& mounts = container.get_array("volumeMounts");
      if (std::any_of(mounts.begin(), mounts.end(),
                      [&](const Json& mount) { return mount.get_string("name") == name; })) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace trainer::jobset
