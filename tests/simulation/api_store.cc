#include "tests/simulation/api_store.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/merge_patch.hh"
#include "runtimes/jobset/admission.hh"
#include "tests/simulation/server_apply.hh"

namespace trainer::simulation {
namespace {

using kube::Json;
using kube::ObjectKey;
using kube::ObjectMeta;
using kube::Resource;

// Fields of metadata that only the server sets.
constexpr std::array<std::string_view, 6> kServerFields = {
    "uid",        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "generation", "resourceVersion"};

std::vector<Resource> kinds() {
  return {kTrainJobs,
          kTrainingRuntimes,
          kClusterTrainingRuntimes,
          kJobSets,
          {"batch", "v1", "jobs", "Job", true},
          {"", "v1", "pods", "Pod", true},
          {"", "v1", "services", "Service", true},
          {"", "v1", "configmaps", "ConfigMap", true},
          {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
          {"", "v1", "events", "Event", true}};
}

bool has_status(const Resource& resource) {
  return resource.kind != "ConfigMap" && resource.kind != "Event" &&
         !resource.kind.ends_with("Runtime");
}

bool is_of_crd(const Resource& resource) {
  return resource.group == kTrainJobs.group || resource.group == kJobSets.group;
}

Answer not_found(const Resource& resource, const ObjectKey& key) {
  return refusal(404, "NotFound",
                 fmt::format("{} \"{}\" not found", resource.plural, key.to_string()));
}

Answer conflict(const Resource& resource, const ObjectKey& key, std::string_view why) {
  return refusal(409, "Conflict",
                 fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource.plural,
                             key.to_string(), why));
}

void keep_member(Json& object, const Json& from, std::string_view name) {
  if (const Json* value = from.find(name)) {
    object.set(name, *value);
  } else {
    object.erase(name);
  }
}

// Jobs: nothing but `suspend` changes while they run or have run since they were suspended.
std::optional<std::string> refuse_job(const Json& before, const Json& after) {
  const Json* old_template = before.find_path({"spec", "template"});
  const Json* new_template = after.find_path({"spec", "template"});
  if (old_template && new_template && *old_template == *new_template) return std::nullopt;
  const bool is_held = before.find("spec")->get_bool("suspend");
  const Json* status = before.find("status");
  if (is_held && (!status || !status->find("startTime"))) return std::nullopt;
  return "spec.template: Invalid value: field is immutable";
}

std::optional<std::string> refuse_jobset(const Json& before, const Json& after) {
  const auto old_jobset = read_jobset(before);
  const auto new_jobset = read_jobset(after);
  if (!old_jobset || !new_jobset) return "it is no JobSet";
  const auto errors = jobset::validate_update(*old_jobset, *new_jobset, {});
  if (errors.empty()) return std::nullopt;
  return kube::to_string(errors);
}

std::optional<std::string> refuse_update(const Resource& resource, const Json& before,
                                         const Json& after) {
  if (before.find("spec") == nullptr || after.find("spec") == nullptr) return std::nullopt;
  if (*before.find("spec") == *after.find("spec")) return std::nullopt;
  if (resource.kind == "Job") return refuse_job(before, after);
  if (resource.kind == "JobSet") return refuse_jobset(before, after);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Actor actor) {
  switch (actor) {
    case Actor::kController:
      return "controller";
    case Actor::kCluster:
      return "cluster";
    case Actor::kUser:
      return "user";
  }
  return "";
}

Answer refusal(int status, std::string_view reason, std::string message) {
  Json body = Json::object({{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Failure"}});
  body.set("code", status).set("reason", reason).set("message", std::move(message));
  return {status, std::move(body)};
}

ApiStore::ApiStore(const Timeline& timeline) : timeline_(timeline) {
  for (auto& resource : kinds()) {
    const std::string plural = resource.plural;
    shelves_[plural].resource = std::move(resource);
  }
}

ApiStore::Shelf& ApiStore::shelf(std::string_view plural) {
  return shelves_.find(plural)->second;
}

const ApiStore::Shelf& ApiStore::shelf(std::string_view plural) const {
  return shelves_.find(plural)->second;
}

const Resource* ApiStore::find_kind(std::string_view plural) const {
  const auto at = shelves_.find(plural);
  return at == shelves_.end() ? nullptr : &at->second.resource;
}

const ApiStore::Collection& ApiStore::all(std::string_view plural) const {
  return shelf(plural).objects;
}

Object ApiStore::find(std::string_view plural, const ObjectKey& key) const {
  const auto& objects = shelf(plural).objects;
  const auto at = objects.find(key);
  return at == objects.end() ? nullptr : at->second;
}

const std::vector<WatchEvent>& ApiStore::history(std::string_view plural) const {
  return shelf(plural).history;
}

std::int64_t ApiStore::floor(std::string_view plural) const {
  return shelf(plural).floor;
}

void ApiStore::compact(std::string_view plural) {
  shelf(plural).history.clear();
  shelf(plural).floor = version_;
}

void ApiStore::publish(Actor actor, Shelf& shelf, const Object& before, Object after,
                       Object state) {
  const auto meta = ObjectMeta::of(*state);
  const ObjectKey key = meta.key();
  if (after) {
    shelf.objects[key] = after;
    keys_by_uid_[meta.uid] = key;
  } else {
    shelf.objects.erase(key);
    keys_by_uid_.erase(meta.uid);
    applied_.erase(meta.uid);
  }
  if (shelf.resource.kind != "Event") {
    WatchEvent event;
    event.version = version_;
    event.type = !before ? "ADDED" : after ? "MODIFIED" : "DELETED";
    event.object = state;
    event.line = std::make_shared<const std::string>(
        kube::print_json(Json::object({{"type", event.type}, {"object", *state}})) + "\n");
    shelf.history.push_back(std::move(event));
  }
  const Change change{actor, shelf.resource, key, before, after};
  for (const auto& observer : observers_) observer(change);
}

bool ApiStore::is_removable(const Json& object) const {
  const Json* metadata = object.find("metadata");
  return metadata->find("deletionTimestamp") && metadata->get_array("finalizers").empty();
}

Answer ApiStore::commit(Actor actor, Shelf& shelf, const Object& before, Json after) {
  Json& metadata = after["metadata"];
  for (const auto name : kServerFields) keep_member(metadata, *before->find("metadata"), name);
  if (after == *before) return {200, std::move(after)};
  const Json* old_spec = before->find("spec");
  const Json* new_spec = after.find("spec");
  if (old_spec && new_spec && *old_spec != *new_spec) {
    metadata.set("generation", metadata.get_int("generation") + 1);
  }
  metadata.set("resourceVersion", std::to_string(++version_));
  auto stored = std::make_shared<const Json>(std::move(after));
  const bool is_gone = is_removable(*stored) && shelf.resource.kind != "Pod";
  publish(actor, shelf, before, is_gone ? nullptr : stored, stored);
  return {200, *stored};
}

void ApiStore::stamp_new(const Resource& resource, Json& object) {
  object.set("apiVersion", resource.api_version()).set("kind", resource.kind);
  Json& metadata = object["metadata"];
  metadata.set("uid", fmt::format("uid-{:04}", ++made_));
  metadata.set("creationTimestamp", timeline_.now().to_string());
  metadata.set("generation", 1);
  metadata.set("resourceVersion", std::to_string(++version_));
  if (is_of_crd(resource)) {
    if (resource.kind == "JobSet") jobset::apply_webhook_defaults(object);
    apply_schema_defaults(object);
  }
  if (has_status(resource)) object.erase("status");
}

Answer ApiStore::create(Actor actor, const Resource& resource, Json object) {
  const ObjectKey key = ObjectMeta::of(object).key();
  Shelf& on = shelf(resource.plural);
  if (on.objects.count(key)) {
    return refusal(409, "AlreadyExists",
                   fmt::format("{} \"{}\" already exists", resource.plural, key.name));
  }
  stamp_new(resource, object);
  auto stored = std::make_shared<const Json>(std::move(object));
  publish(actor, on, nullptr, stored, stored);
  return {201, *stored};
}

Answer ApiStore::merge(Actor actor, const Resource& resource, const ObjectKey& key,
                       const Json& patch, std::string_view subresource) {
  Shelf& on = shelf(resource.plural);
  const Object before = find(resource.plural, key);
  if (!before) return not_found(resource, key);
  const Json* metadata = patch.find("metadata");
  const auto expected = metadata ? metadata->get_string("resourceVersion") : std::string_view();
  if (!expected.empty() && expected != ObjectMeta::of(*before).resource_version) {
    return conflict(resource, key, "the object has been modified");
  }
  Json after = kube::test::merge_patch(*before, patch);
  if (subresource == "status") {
    Json changed = *before;
    keep_member(changed, after, "status");
    after = std::move(changed);
  } else if (has_status(resource)) {
    keep_member(after, *before, "status");
  }
  if (is_of_crd(resource)) apply_schema_defaults(after);
  if (const auto why = refuse_update(resource, *before, after))
    return refusal(422, "Invalid", *why);
  return commit(actor, on, before, std::move(after));
}

Answer ApiStore::apply(Actor actor, const Resource& resource, const ObjectKey& key, Json desired,
                       bool force) {
  Shelf& on = shelf(resource.plural);
  const Object before = find(resource.plural, key);
  const auto uid = ObjectMeta::of(desired).uid;
  if (!before) {
    if (!uid.empty()) return conflict(resource, key, "Precondition failed: UID in precondition");
    Json object = desired;
    object["metadata"].set("managedFields", managed_fields_of(desired));
    Answer made = create(actor, resource, std::move(object));
    applied_[ObjectMeta::of(made.body).uid] = std::move(desired);
    return made;
  }
  const auto known = ObjectMeta::of(*before).uid;
  if (!uid.empty() && uid != known) return conflict(resource, key, "Precondition failed: UID");
  const auto last = applied_.find(known);
  if (last == applied_.end() && !force) {
    return conflict(resource, key, "conflicts with another field manager");
  }
  Json after = server_side_apply(*before, last == applied_.end() ? Json() : last->second, desired);
  after["metadata"].set("managedFields", managed_fields_of(desired));
  keep_member(after, *before, "status");
  if (is_of_crd(resource)) apply_schema_defaults(after);
  if (const auto why = refuse_update(resource, *before, after))
    return refusal(422, "Invalid", *why);
  applied_[known] = std::move(desired);
  return commit(actor, on, before, std::move(after));
}

Answer ApiStore::remove(Actor actor, const Resource& resource, const ObjectKey& key,
                        const Json& options) {
  Shelf& on = shelf(resource.plural);
  const Object before = find(resource.plural, key);
  if (!before) return not_found(resource, key);
  const Json* preconditions = options.find("preconditions");
  const auto uid = preconditions ? preconditions->get_string("uid") : std::string_view();
  if (!uid.empty() && uid != ObjectMeta::of(*before).uid) {
    return conflict(resource, key, "Precondition failed: UID in precondition");
  }
  Json after = *before;
  Json& metadata = after["metadata"];
  const bool is_foreground = options.get_string("propagationPolicy") == "Foreground";
  const bool is_graceful = resource.kind == "Pod";
  if (is_foreground && !metadata.find("deletionTimestamp")) {
    metadata["finalizers"].push_back("foregroundDeletion");
  }
  if (metadata.get_array("finalizers").empty() && !is_graceful) {
    erase(actor, resource.plural, key);
    return {200, Json::object({{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Success"}})};
  }
  if (metadata.find("deletionTimestamp")) return {200, *before};
  const auto grace = std::chrono::seconds(is_graceful ? 30 : 0);
  metadata.set("deletionTimestamp", (timeline_.now() + grace).to_string());
  if (is_graceful) metadata.set("deletionGracePeriodSeconds", 30);
  metadata.set("resourceVersion", std::to_string(++version_));
  auto stored = std::make_shared<const Json>(std::move(after));
  publish(actor, on, before, stored, stored);
  return {200, *stored};
}

void ApiStore::replace(std::string_view plural, Json object) {
  Shelf& on = shelf(plural);
  const Object before = find(plural, ObjectMeta::of(object).key());
  if (before) commit(Actor::kCluster, on, before, std::move(object));
}

void ApiStore::erase(Actor actor, std::string_view plural, const ObjectKey& key) {
  Shelf& on = shelf(plural);
  const Object before = find(plural, key);
  if (!before) return;
  Json last = *before;
  last["metadata"].set("resourceVersion", std::to_string(++version_));
  publish(actor, on, before, nullptr, std::make_shared<const Json>(std::move(last)));
}

}  // namespace trainer::simulation
