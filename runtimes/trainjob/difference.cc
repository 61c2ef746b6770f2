#include "runtimes/trainjob/difference.hh"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/difference.hh"
#include "kube/model/json_text.hh"
#include "kube/model/name_index.hh"

namespace trainer {
namespace {

using kube::is_contained;
using kube::is_equivalent;
using kube::Json;

constexpr std::string_view kManager = "trainer";

// A suspended JobSet's pod template may change these fields (JobSet's own admission rule), and only
// this controller sets them.
bool are_scheduling_fields_equal(const Json& desired_pod, const Json& stored_pod) {
  for (const std::string_view name : {"nodeSelector", "tolerations", "schedulingGates"}) {
    if (!is_equivalent(desired_pod.get_path({"spec", name}), stored_pod.get_path({"spec", name})))
      return false;
  }
  return true;
}

bool are_labels_removed(const Json& desired_meta, const Json& stored_meta) {
  return !is_contained(stored_meta.get("labels"), desired_meta.get("labels")) ||
         !is_contained(stored_meta.get("annotations"), desired_meta.get("annotations"));
}

const Json& pod_template_of(const Json& replicated_job) {
  return replicated_job.get_path({"template", "spec", "template"});
}

const Json::Array& replicated_jobs_of(const Json& jobset) {
  return jobset.get("spec").get_array("replicatedJobs");
}

// These are the names of labels and annotations, written "JOB/labels/KEY"; "" is the JobSet itself.
using FieldNames = std::vector<std::string>;

void add_field(FieldNames& names, std::string_view job, std::string_view map,
               std::string_view key) {
  std::string name(job);
  name.append("/").append(map).append("/").append(key);
  names.push_back(std::move(name));
}

// The hash is FNV-1a over the sorted names. It is only compared with hashes made by this program.
std::uint64_t hash_of(FieldNames names) {
  std::sort(names.begin(), names.end());
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 1099511628211ULL; };
  for (const std::string& name : names) {
    for (const char c : name) add(static_cast<unsigned char>(c));
    add(0);
  }
  return hash;
}

void add_desired(FieldNames& names, std::string_view job, const Json& metadata) {
  for (const std::string_view map : {"labels", "annotations"}) {
    for (const auto& [key, value] : metadata.get_object(map)) add_field(names, job, map, key);
  }
}

std::uint64_t desired_template_fields(const Json& jobset) {
  FieldNames names;
  add_desired(names, "", jobset.get("metadata"));
  for (const Json& job : replicated_jobs_of(jobset)) {
    add_desired(names, job.get_string("name"), pod_template_of(job).get("metadata"));
  }
  return hash_of(std::move(names));
}

// `metadata` in the notation of FieldsV1: {"f:labels": {"f:KEY": {}}}.
void add_owned(FieldNames& names, std::string_view job, const Json& metadata) {
  for (const std::string_view map : {"labels", "annotations"}) {
    for (const auto& [key, value] : metadata.get_object("f:" + std::string(map))) {
      if (key.starts_with("f:")) add_field(names, job, map, std::string_view(key).substr(2));
    }
  }
}

// The fields that this controller owns by apply, or null.
const Json& owned_fields(const Json& object) {
  for (const Json& entry : object.get("metadata").get_array("managedFields")) {
    if (entry.get_string("manager") == kManager && entry.get_string("operation") == "Apply" &&
        entry.get_string("subresource").empty()) {
      return entry.get("fieldsV1");
    }
  }
  return Json::null();
}

// Returns the item of `list` that a FieldsV1 key such as `k:{"name":"node"}` addresses.
const Json* find_keyed(const Json& list, std::string_view field) {
  const auto keys = kube::parse_json(field.substr(2));
  if (!keys || !list.is_array()) return nullptr;
  for (const Json& item : list.as_array()) {
    if (is_contained(*keys, item)) return &item;
  }
  return nullptr;
}

// Returns whether `fields` (FieldsV1) owns something that `desired` no longer has, and an apply
// would therefore remove.
bool owns_more(const Json& fields, const Json& desired) {
  if (!fields.is_object()) return false;
  for (const auto& [name, below] : fields.as_object()) {
    const Json* value = nullptr;
    if (name.starts_with("f:")) {
      value = desired.find(std::string_view(name).substr(2));
    } else if (name.starts_with("k:")) {
      value = find_keyed(desired, name);
    } else {
      continue;  // "." is the container itself, "v:" an item of a set: its change shows in the
                 // values
    }
    if (!value || owns_more(below, *value)) return true;
  }
  return false;
}

}  // namespace

bool is_jobset_changed(const Json& desired, const Json& stored,
                       std::optional<std::uint64_t> owned) {
  for (const std::string_view part : {"spec", "metadata"}) {
    if (!is_contained(desired.get(part), stored.get(part))) return true;
  }
  // An absent `suspend` and a false one mean the same, so is_contained() does not see that a
  // `suspend` must be removed.
  if (desired.get("spec").get_bool("suspend") != stored.get("spec").get_bool("suspend"))
    return true;
  const kube::NameIndex stored_jobs(replicated_jobs_of(stored));
  for (const Json& job : replicated_jobs_of(desired)) {
    const auto at = stored_jobs.find(job.get_string("name"));
    const Json* other = at ? &replicated_jobs_of(stored)[*at] : nullptr;
    if (!other || !are_scheduling_fields_equal(pod_template_of(job), pod_template_of(*other)))
      return true;
    if (!owned && are_labels_removed(pod_template_of(job).get("metadata"),
                                     pod_template_of(*other).get("metadata"))) {
      return true;
    }
  }
  if (owned) return *owned != desired_template_fields(desired);
  return are_labels_removed(desired.get("metadata"), stored.get("metadata"));
}

bool is_dependent_changed(const Json& desired, const Json& stored) {
  if (!is_contained(desired, stored)) return true;
  const Json& fields = owned_fields(stored);
  if (fields.is_object()) return owns_more(fields, desired);
  // An object that this controller has just sent has no version yet: all of it is this controller's
  // own.
  if (stored.get_path({"metadata", "resourceVersion"}).is_null()) {
    return !is_contained(stored.get("spec"), desired.get("spec")) ||
           !is_contained(stored.get("data"), desired.get("data"));
  }
  // The object was read without managedFields. All data of a ConfigMap are this controller's; any
  // other object may have members that its own controllers added.
  return desired.get_object("data").size() != stored.get_object("data").size();
}

std::optional<std::uint64_t> owned_template_fields(const Json& jobset) {
  const Json& fields = owned_fields(jobset);
  if (!fields.is_object()) return std::nullopt;
  FieldNames names;
  add_owned(names, "", fields.get("f:metadata"));
  for (const auto& [key, below] : fields.get("f:spec").get_object("f:replicatedJobs")) {
    if (!key.starts_with("k:")) continue;
    const auto item = kube::parse_json(std::string_view(key).substr(2));
    if (!item) continue;
    add_owned(names, item->get_string("name"),
              below.get_path({"f:template", "f:spec", "f:template", "f:metadata"}));
  }
  return hash_of(std::move(names));
}

const kube::JsonFilter& seen_of_managed_fields() {
  using enum kube::JsonFilter::Members;
  // f:spec.f:replicatedJobs.k:{"name":...}.f:template.f:spec.f:template.f:metadata
  static const kube::JsonFilter kTemplates{
      "f:replicatedJobs",
      kInclude,
      {{"*",
        kInclude,
        {{"f:template",
          kInclude,
          {{"f:spec", kInclude, {{"f:template", kInclude, {{"f:metadata"}}}}}}}}}}};
  static const kube::JsonFilter kFields{
      "fieldsV1", kInclude, {{"f:metadata"}, {"f:spec", kInclude, {kTemplates}}}};
  static const kube::JsonFilter kSeen{
      "managedFields", kInclude, {{"manager"}, {"operation"}, {"subresource"}, kFields}};
  return kSeen;
}

}  // namespace trainer
