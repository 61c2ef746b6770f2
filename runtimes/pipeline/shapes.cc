#include "runtimes/pipeline/shapes.hh"

#include <set>
#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer::pipeline {

namespace {

struct Checker {
  kube::FieldErrors errors;

  void wrong(std::string path, const kube::Json& value, std::string_view desired) {
    errors.push_back(
        kube::invalid(std::move(path), value, "must be {}, not {}", desired, value.type_name()));
  }

  // The member when it is an object; null counts as absent.
  const kube::Json* object(const kube::Json& parent, const std::string& path,
                           std::string_view member) {
    const kube::Json& found = parent.get(member);
    if (found.is_object()) return &found;
    if (!found.is_null()) wrong(kube::join_field(path, member), found, "an object");
    return nullptr;
  }

  // The member when it is a list of objects.
  const kube::Json* objects(const kube::Json& parent, const std::string& path,
                            std::string_view member) {
    const kube::Json* found = parent.find(member);
    if (found == nullptr || found->is_null()) return nullptr;
    const std::string below = kube::join_field(path, member);
    if (!found->is_array()) {
      wrong(below, *found, "a list");
      return nullptr;
    }
    bool is_good = true;
    for (std::size_t i = 0; i < found->size(); ++i) {
      if (found->as_array()[i].is_object()) continue;
      wrong(kube::join_index(below, i), found->as_array()[i], "an object");
      is_good = false;
    }
    return is_good ? found : nullptr;
  }

  void metadata(const kube::Json& parent, const std::string& path) {
    const kube::Json* found = object(parent, path, "metadata");
    if (found == nullptr) return;
    object(*found, kube::join_field(path, "metadata"), "labels");
    object(*found, kube::join_field(path, "metadata"), "annotations");
  }

  void containers(const kube::Json& pod_spec, const std::string& path, std::string_view member) {
    const kube::Json* list = objects(pod_spec, path, member);
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const kube::Json& container = list->as_array()[i];
      const std::string at = kube::join_index(kube::join_field(path, member), i);
      for (const std::string_view name : {"env", "envFrom", "ports", "volumeMounts"})
        objects(container, at, name);
      if (const kube::Json* resources = object(container, at, "resources")) {
        object(*resources, at + ".resources", "limits");
        object(*resources, at + ".resources", "requests");
        objects(*resources, at + ".resources", "claims");
      }
    }
  }

  void job(const ReplicatedJob& job, const std::string& path) {
    if (!job.template_.is_object()) return wrong(path, job.template_, "an object");
    metadata(job.template_, path);
    const kube::Json* spec = object(job.template_, path, "spec");
    const kube::Json* pod = spec == nullptr ? nullptr : object(*spec, path + ".spec", "template");
    const kube::Json* pod_spec =
        pod == nullptr ? nullptr : object(*pod, path + ".spec.template", "spec");
    const std::string pod_path = path + ".spec.template.spec";
    if (pod_spec == nullptr || pod_spec->get_array("containers").empty()) {
      if (errors.empty())
        errors.push_back(
            kube::required(pod_path + ".containers", "a job needs at least one container"));
      return;
    }
    metadata(*pod, path + ".spec.template");
    containers(*pod_spec, pod_path, "containers");
    containers(*pod_spec, pod_path, "initContainers");
    objects(*pod_spec, pod_path, "volumes");
  }
};

}  // namespace

kube::FieldErrors check_shapes(const JobSetSpec& spec) {
  Checker checker;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < spec.replicatedJobs.size(); ++i) {
    const std::string path = kube::join_index("spec.template.spec.replicatedJobs", i);
    if (!names.insert(spec.replicatedJobs[i].name).second)
      checker.errors.push_back(
          {kube::FieldError::Type::kDuplicate, path + ".name", spec.replicatedJobs[i].name, ""});
    checker.job(spec.replicatedJobs[i], path + ".template");
  }
  return checker.errors;
}

}  // namespace trainer::pipeline
