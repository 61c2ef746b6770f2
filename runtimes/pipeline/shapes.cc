#include "runtimes/pipeline/shapes.hh"

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer::pipeline {

namespace {

// This is a field's path, made into text only for an error.
struct Path {
  const Path* above = nullptr;
  std::string_view name;
  std::optional<std::size_t> index = std::nullopt;

  std::string text() const {
    std::string text = above == nullptr ? std::string(name) : kube::join_field(above->text(), name);
    return index ? kube::join_index(text, *index) : text;
  }
};

struct Checker {
  kube::FieldErrors errors;

  void wrong(const Path& path, const kube::Json& value, std::string_view desired) {
    errors.push_back(
        kube::invalid(path.text(), value, "must be {}, not {}", desired, value.type_name()));
  }

  // Returns the member if it is an object; null counts as absent.
  const kube::Json* object(const kube::Json& parent, const Path& path) {
    const kube::Json& found = parent.get(path.name);
    if (found.is_object()) return &found;
    if (!found.is_null()) wrong(path, found, "an object");
    return nullptr;
  }

  // Returns the member if it is a list of objects.
  const kube::Json* objects(const kube::Json& parent, const Path& path) {
    const kube::Json& found = parent.get(path.name);
    if (found.is_null()) return nullptr;
    if (!found.is_array()) {
      wrong(path, found, "a list");
      return nullptr;
    }
    bool is_good = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found.as_array()[i].is_object()) continue;
      wrong({path.above, path.name, i}, found.as_array()[i], "an object");
      is_good = false;
    }
    return is_good ? &found : nullptr;
  }

  void metadata(const kube::Json& parent, const Path& above) {
    const Path path{&above, "metadata"};
    const kube::Json* found = object(parent, path);
    if (found == nullptr) return;
    object(*found, {&path, "labels"});
    object(*found, {&path, "annotations"});
  }

  void containers(const kube::Json& pod_spec, const Path& above, std::string_view member) {
    const kube::Json* list = objects(pod_spec, {&above, member});
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const kube::Json& container = list->as_array()[i];
      const Path path{&above, member, i};
      for (const std::string_view name : {"env", "envFrom", "ports", "volumeMounts"})
        objects(container, {&path, name});
      const Path below{&path, "resources"};
      if (const kube::Json* resources = object(container, below)) {
        object(*resources, {&below, "limits"});
        object(*resources, {&below, "requests"});
        objects(*resources, {&below, "claims"});
      }
    }
  }

  void job(const ReplicatedJob& job, const Path& path) {
    if (!job.template_.is_object()) return wrong(path, job.template_, "an object");
    metadata(job.template_, path);
    const Path spec_path{&path, "spec"};
    const Path pod_path{&spec_path, "template"};
    const Path pod_spec_path{&pod_path, "spec"};
    const kube::Json* spec = object(job.template_, spec_path);
    const kube::Json* pod = spec == nullptr ? nullptr : object(*spec, pod_path);
    const kube::Json* pod_spec = pod == nullptr ? nullptr : object(*pod, pod_spec_path);
    if (pod_spec == nullptr || pod_spec->get_array("containers").empty()) {
      if (errors.empty())
        errors.push_back(kube::required(Path{&pod_spec_path, "containers"}.text(),
                                        "a job needs at least one container"));
      return;
    }
    metadata(*pod, pod_path);
    containers(*pod_spec, pod_spec_path, "containers");
    containers(*pod_spec, pod_spec_path, "initContainers");
    objects(*pod_spec, {&pod_spec_path, "volumes"});
  }
};

}  // namespace

kube::FieldErrors check_shapes(const JobSetSpec& spec) {
  Checker checker;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < spec.replicatedJobs.size(); ++i) {
    const Path path{nullptr, "spec.template.spec.replicatedJobs", i};
    if (!names.insert(spec.replicatedJobs[i].name).second)
      checker.errors.push_back({kube::FieldError::Type::kDuplicate, Path{&path, "name"}.text(),
                                spec.replicatedJobs[i].name, ""});
    checker.job(spec.replicatedJobs[i], {&path, "template"});
  }
  return checker.errors;
}

}  // namespace trainer::pipeline
