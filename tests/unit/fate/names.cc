#include "tests/unit/fate/names.hh"

#include <fmt/format.h>

#include "runtimes/views/labels.hh"

namespace trainer::fate {
namespace {

using kube::Json;

void add_metadata(const Json& object, Name name, std::vector<Name>& names) {
  for (const char* map : {"labels", "annotations"})
    for (const auto& [key, value] : object.get("metadata").get_object(map)) {
      name.member = map;
      name.key = key;
      names.push_back(name);
    }
}

void add_items(const Json& owner, Name name, std::string_view member, std::string_view key,
               std::vector<Name>& names) {
  name.member = member;
  for (const Json& item : owner.get_array(member)) {
    name.key = item.get_string(key);
    names.push_back(name);
  }
}

void add_pod(const Json& pod, Name name, std::vector<Name>& names) {
  name.level = "Pod";
  add_metadata(pod, name, names);
  const Json& spec = pod.get("spec");
  add_items(spec, name, "volumes", "name", names);
  for (const char* list : {"containers", "initContainers"})
    for (const Json& container : spec.get_array(list)) {
      Name of_container = name;
      of_container.list = list;
      of_container.container = container.get_string("name");
      add_items(container, of_container, "env", "name", names);
      add_items(container, of_container, "volumeMounts", "mountPath", names);
      of_container.member = "container";
      of_container.key = of_container.container;
      names.push_back(of_container);
    }
}

// The item with this key, made where there is none.
Json& item_of(Json& list, std::string_view key, std::string_view value) {
  if (list.is_array())
    for (Json& item : list.as_array())
      if (item.get_string(key) == value) return item;
  list.push_back(Json::object({{key, value}}));
  return list.as_array().back();
}

}  // namespace

std::string Name::to_string() const {
  std::string text = fmt::format("{} {} of {}", member, key, level);
  if (!job.empty()) text += " of job " + job;
  if (!container.empty()) text += ", container " + container;
  return text;
}

void add_names_of_jobset(const Json& jobset, std::vector<Name>& names) {
  add_metadata(jobset, {.level = "JobSet"}, names);
}

void add_names_of_job(const Json& job, std::vector<Name>& names) {
  const Name name{
      .job = std::string(
          job.get_path({"metadata", "labels"}).get_string(jobset::kReplicatedJobNameKey)),
      .level = "Job"};
  add_metadata(job, name, names);
  add_pod(job.get_path({"spec", "template"}), name, names);
}

void add_names_of_pod(const Json& pod, std::string_view role, std::vector<Name>& names) {
  add_pod(pod, {.job = std::string(role)}, names);
}

std::string set_name(Json& owner, const Name& name, std::string_view marker, Values& values) {
  if (name.member == "labels" || name.member == "annotations") {
    owner["metadata"][name.member].set(name.key, marker);
    return fmt::format("metadata.{}[]", name.member);
  }
  Json& spec = owner["spec"];
  if (name.member == "volumes") {
    item_of(spec["volumes"], "name", name.key) = Json::object(
        {{"name", name.key}, {"hostPath", Json::object({{"path", fmt::format("/{}", marker)}})}});
    return "spec.volumes[].name";
  }
  Json& container = item_of(spec[name.list], "name", name.container);
  const std::string path = fmt::format("spec.{}[]", name.list);
  if (name.member == "container") {
    container.set("image", marker);
    return path + ".name";
  }
  if (name.member == "env") {
    item_of(container["env"], "name", name.key) =
        Json::object({{"name", name.key}, {"value", marker}});
    return path + ".env[].value";
  }
  const std::string volume = values.text();
  item_of(container["volumeMounts"], "mountPath", name.key) =
      Json::object({{"name", volume}, {"mountPath", name.key}, {"subPath", marker}});
  spec["volumes"].push_back(Json::object({{"name", volume}, {"emptyDir", Json::object()}}));
  return path + ".volumeMounts[].mountPath";
}

}  // namespace trainer::fate
