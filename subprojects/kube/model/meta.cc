#include "kube/model/meta.hh"

#include <algorithm>

namespace kube {
namespace {

std::optional<Time> read_time(const Json& object, std::string_view name) {
  return Time::parse(object.get_string(name));
}

OwnerReference read_owner(const Json& value) {
  OwnerReference owner;
  owner.api_version = value.get_string("apiVersion");
  owner.kind = value.get_string("kind");
  owner.name = value.get_string("name");
  owner.uid = value.get_string("uid");
  owner.controller = value.get_bool("controller");
  owner.block_owner_deletion = value.get_bool("blockOwnerDeletion");
  return owner;
}

bool is_decimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::string_view without_leading_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

JsonFilter metadata_with(std::vector<JsonFilter> more) {
  for (const char* name : {"name", "namespace", "uid", "resourceVersion"}) more.push_back({name});
  return {"metadata", JsonFilter::Members::kInclude, std::move(more)};
}

Json OwnerReference::to_json() const {
  Json value =
      Json::object({{"apiVersion", api_version}, {"kind", kind}, {"name", name}, {"uid", uid}});
  if (controller) value.set("controller", true);
  if (block_owner_deletion) value.set("blockOwnerDeletion", true);
  return value;
}

ObjectMeta ObjectMeta::of(const Json& object) {
  ObjectMeta meta;
  const Json& metadata = object.get("metadata");
  meta.name = metadata.get_string("name");
  meta.generate_name = metadata.get_string("generateName");
  meta.ns = metadata.get_string("namespace");
  meta.uid = metadata.get_string("uid");
  meta.resource_version = metadata.get_string("resourceVersion");
  meta.generation = metadata.get_int("generation");
  meta.creation_timestamp = read_time(metadata, "creationTimestamp");
  meta.deletion_timestamp = read_time(metadata, "deletionTimestamp");
  meta.labels = read_string_map(metadata.find("labels"));
  meta.annotations = read_string_map(metadata.find("annotations"));
  for (const Json& finalizer : metadata.get_array("finalizers")) {
    if (finalizer.is_string()) meta.finalizers.push_back(finalizer.as_string());
  }
  for (const Json& owner : metadata.get_array("ownerReferences"))
    meta.owner_references.push_back(read_owner(owner));
  return meta;
}

const OwnerReference* ObjectMeta::controller() const {
  const auto at = std::ranges::find_if(owner_references, &OwnerReference::controller);
  return at == owner_references.end() ? nullptr : &*at;
}

StringMap read_string_map(const Json* value) {
  StringMap map;
  if (!value || !value->is_object()) return map;
  for (const auto& [name, member] : value->as_object()) {
    if (member.is_string()) map.emplace_hint(map.end(), name, member.as_string());
  }
  return map;
}

Json to_json(const StringMap& map) {
  return JsonObject::of(JsonObject::Members(map.begin(), map.end()));
}

Condition Condition::read(const Json& value) {
  Condition condition;
  condition.type = value.get_string("type");
  condition.status = value.get_string("status");
  condition.reason = value.get_string("reason");
  condition.message = value.get_string("message");
  condition.last_transition_time = read_time(value, "lastTransitionTime");
  if (const Json* generation = value.find("observedGeneration"); generation && generation->is_int())
    condition.observed_generation = generation->as_int();
  return condition;
}

Json Condition::to_json() const {
  Json value =
      Json::object({{"type", type}, {"status", status}, {"reason", reason}, {"message", message}});
  if (last_transition_time) value.set("lastTransitionTime", last_transition_time->to_string());
  if (observed_generation) value.set("observedGeneration", *observed_generation);
  return value;
}

std::string condition_reason(std::string text) {
  constexpr std::size_t kMaxBytes = 1'024;
  if (text.size() > kMaxBytes) text.resize(kMaxBytes);
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (char& c : text) {
    if (!is_word(c) && ((c != ',' && c != ':') || &c == &text.back())) c = '_';
  }
  return text;
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto at = std::ranges::find(conditions, type, &Condition::type);
  return at == conditions.end() ? nullptr : &*at;
}

bool is_condition_true(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* condition = find_condition(conditions, type);
  return condition && condition->is_true();
}

const Json& condition_of(const Json& object, std::string_view type) {
  for (const Json& condition : object.get("status").get_array("conditions"))
    if (condition.get_string("type") == type) return condition;
  return Json::null();
}

bool has_condition(const Json& object, std::string_view type) {
  return condition_of(object, type).get_string("status") == "True";
}

bool set_condition(std::vector<Condition>& conditions, Condition condition, Time now) {
  if (!condition.last_transition_time) condition.last_transition_time = now;
  const auto existing = std::ranges::find(conditions, condition.type, &Condition::type);
  if (existing == conditions.end()) {
    conditions.push_back(std::move(condition));
    return true;
  }
  if (existing->status == condition.status)
    condition.last_transition_time = existing->last_transition_time;
  if (*existing == condition) return false;
  *existing = std::move(condition);
  return true;
}

bool is_newer_version(std::string_view a, std::string_view b) {
  if (!is_decimal(a) || !is_decimal(b)) return false;
  a = without_leading_zeros(a);
  b = without_leading_zeros(b);
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

}  // namespace kube
