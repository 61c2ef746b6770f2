#include "runtimes/jobset/job_template.hh"

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

std::set<std::string_view> mounted_volumes(const Json& pod_spec) {
  std::set<std::string_view> names;
  for (const std::string_view list : {"containers", "initContainers"})
    for (const Json& container : pod_spec.get_array(list))
      for (const Json& mount : container.get_array("volumeMounts"))
        names.insert(mount.get_string("name"));
  return names;
}

Json& object_at(Json& parent, std::string_view name) {
  Json& child = parent[name];
  if (!child.is_object()) child = Json::object();
  return child;
}

Json& array_at(Json& parent, std::string_view name) {
  Json& child = parent[name];
  if (!child.is_array()) child = Json::array();
  return child;
}

}  // namespace trainer::jobset
