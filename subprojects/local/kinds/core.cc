// These kinds have few rules of their own.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "kube/model/digest.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "local/kinds/cells.hh"
#include "local/kinds/kinds.hh"

namespace trainer::local {
namespace {

using kube::Time;

// ---- ConfigMaps and Secrets

constexpr std::size_t kMaxData = 1U << 20;  // bytes

void check_key(std::string_view key, std::string_view path, FieldErrors& errors) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  constexpr std::size_t kMaxKey = 253;
  const std::string at = kube::join_key(path, key);
  if (key.size() > kMaxKey)
    errors.push_back(kube::invalid(at, key, "must be no more than 253 characters"));
  if (key.empty() || !std::all_of(key.begin(), key.end(), is_allowed))
    errors.push_back(kube::invalid(
        at, key,
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
        "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
        "'[-._a-zA-Z0-9]+')"));
  if (key == "." || key == "..")
    errors.push_back(kube::invalid(at, key, fmt::format("must not be '{}'", key)));
}

// Checks the keys of a map; returns how many bytes its values have. `is_encoded` says that they are
// base64, which was checked when the object was decoded.
std::size_t check_data(const Json& object, std::string_view member, bool is_encoded,
                       FieldErrors& errors) {
  std::size_t size = 0;
  for (const auto& [key, value] : object.get_object(member)) {
    check_key(key, member, errors);
    const std::string text = value.is_string() ? value.as_string() : "";
    size += is_encoded ? kube::base64_decode(text).value_or("").size() : text.size();
  }
  return size;
}

void check_immutable_data(const Json& object, const Json* before,
                          std::initializer_list<std::string_view> names, FieldErrors& errors) {
  if (before == nullptr || !before->get_bool("immutable")) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!object.get_bool("immutable"))
    errors.push_back(kube::forbidden("immutable", std::string(kWhy)));
  for (const std::string_view name : names)
    if (object.get(name) != before->get(name))
      errors.push_back(kube::forbidden(std::string(name), std::string(kWhy)));
}

FieldErrors check_config_map(const Json& map, const Json* before) {
  FieldErrors errors;
  const std::size_t size =
      check_data(map, "data", false, errors) + check_data(map, "binaryData", true, errors);
  for (const auto& [key, value] : map.get_object("binaryData"))
    if (map.get("data").find(key) != nullptr)
      errors.push_back(kube::invalid(kube::join_key("data", key), key,
                                     "duplicate of key present in binaryData"));
  // The path "[]" is the empty path, in the form of field.NewPath("").
  if (size > kMaxData) errors.push_back(kube::too_long("[]", kMaxData));
  check_immutable_data(map, before, {"data", "binaryData"}, errors);
  return errors;
}

// Go prints maps with `omitempty` in this form: empty ones are left out.
void drop_empty(Json& object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (object.get(name).is_object() && object.get(name).empty()) object.erase(name);
}

void set_config_map_defaults(Json& map) {
  drop_empty(map, {"data", "binaryData"});
}

void set_secret_defaults(Json& secret) {
  set_default(secret, "type", "Opaque");
  for (const auto& [key, value] : secret.get_object("stringData"))
    if (value.is_string()) secret["data"].set(key, kube::base64_encode(value.as_string()));
  secret.erase("stringData");
  drop_empty(secret, {"data"});
}

FieldErrors check_secret(const Json& secret, const Json* before) {
  FieldErrors errors;
  if (check_data(secret, "data", true, errors) > kMaxData)
    errors.push_back(kube::too_long("data", kMaxData));
  if (before != nullptr) check_immutable(secret, *before, "", {"type"}, errors);
  check_immutable_data(secret, before, {"data"}, errors);
  return errors;
}

Json config_map_cells(const Json& map, Time now) {
  const auto count =
      static_cast<std::int64_t>(map.get("data").size() + map.get("binaryData").size());
  return Json::array({name_of(map), count, age_of(map, now)});
}

Json secret_cells(const Json& secret, Time now) {
  const auto count = static_cast<std::int64_t>(secret.get("data").size());
  return Json::array({name_of(secret), secret.get_string("type"), count, age_of(secret, now)});
}

// ---- Namespaces, Nodes, Events

void set_namespace_defaults(Json& ns) {
  Json& metadata = ns["metadata"];
  if (const std::string name(metadata.get_string("name")); !name.empty())
    metadata["labels"].set("kubernetes.io/metadata.name", name);
  set_default(ns["spec"], "finalizers", Json::array({"kubernetes"}));
  set_default(ns["status"], "phase", "Active");
}

Json namespace_cells(const Json& ns, Time now) {
  return Json::array({name_of(ns), ns.get("status").get_string("phase"), age_of(ns, now)});
}

void set_node_defaults(Json& node) {
  kube::canonicalise_quantities(node);
  Json* status = node.find("status");
  if (status != nullptr && status->find("capacity") != nullptr)
    set_default(*status, "allocatable", Json(status->get("capacity")));
}

FieldErrors check_event(const Json& event, const Json*) {
  const std::string_view ns = event.get("metadata").get_string("namespace");
  const std::string_view about = event.get("involvedObject").get_string("namespace");
  // Events about objects without a namespace are in "default".
  if (ns == about || (about.empty() && ns == "default")) return {};
  return {kube::invalid("involvedObject.namespace", about, "does not match event.namespace")};
}

// ---- PersistentVolumeClaims

void set_claim_defaults(Json& claim) {
  kube::canonicalise_quantities(claim);
  if (Json* spec = claim.find("spec")) set_default(*spec, "volumeMode", "Filesystem");
  set_default(claim["status"], "phase", "Pending");
}

// Returns the spec without its mutable parts: the request of a bound claim, and the volume that it
// is bound to.
Json fixed_claim(const Json& claim) {
  Json spec = claim.get("spec");
  for (const char* name : {"resources", "volumeName", "volumeAttributesClassName"})
    spec.erase(name);
  return spec;
}

FieldErrors check_claim(const Json& claim, const Json* before) {
  FieldErrors errors;
  const Json& spec = claim.get("spec");
  if (spec.get_array("accessModes").empty())
    errors.push_back(kube::required("spec.accessModes", "at least 1 access mode is required"));
  if (spec.get("resources").get("requests").find("storage") == nullptr)
    errors.push_back(kube::required("spec.resources[storage]", ""));
  if (before != nullptr && fixed_claim(claim) != fixed_claim(*before))
    errors.push_back(kube::forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName "
        "for bound claims"));
  return errors;
}

std::string access_modes(const Json& status) {
  std::string text;
  for (const Json& mode : status.get_array("accessModes")) {
    if (!text.empty()) text += ",";
    for (const char c : mode.is_string() ? mode.as_string() : "")
      if (c >= 'A' && c <= 'Z') text += c;  // ReadWriteOnce is RWO
  }
  return text;
}

Json claim_cells(const Json& claim, Time now) {
  const Json& spec = claim.get("spec");
  const Json& status = claim.get("status");
  const bool is_deleting = claim.get("metadata").find("deletionTimestamp") != nullptr;
  const bool is_bound = !spec.get_string("volumeName").empty();
  return Json::array({name_of(claim), is_deleting ? "Terminating" : status.get_string("phase"),
                      spec.get_string("volumeName"),
                      is_bound ? status.get("capacity").get_string("storage") : std::string_view(),
                      is_bound ? access_modes(status) : "", spec.get_string("storageClassName"),
                      text_or(spec, "volumeAttributesClassName", "<unset>"), age_of(claim, now),
                      text_or(spec, "volumeMode", "<unset>")});
}

Json service_account_cells(const Json& account, Time now) {
  const auto count = static_cast<std::int64_t>(account.get("secrets").size());
  return Json::array({name_of(account), count, age_of(account, now)});
}

}  // namespace

std::vector<Builtin> core_kinds() {
  return {
      {.resource = kube::kConfigMaps,
       .short_names = {"cm"},
       .rules = {set_config_map_defaults, check_config_map},
       .columns = "Name,Data,Age",
       .cells = config_map_cells},
      {.resource = kube::kEvents,
       .short_names = {"ev"},
       .rules = {nullptr, check_event},
       .columns =
           "Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name",
       .cells = event_cells},
      {.resource = kube::kNamespaces,
       .short_names = {"ns"},
       .rules = {set_namespace_defaults},
       .columns = "Name,Status,Age",
       .cells = namespace_cells,
       .has_status = true},
      {.resource = kube::kNodes,
       .short_names = {"no"},
       .rules = {set_node_defaults},
       .columns = "Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,"
                  "+Kernel-Version,+Container-Runtime",
       .cells = node_cells,
       .has_status = true},
      {.resource = kube::kPersistentVolumeClaims,
       .short_names = {"pvc"},
       .rules = {set_claim_defaults, check_claim},
       .columns = "Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,"
                  "+VolumeMode",
       .cells = claim_cells,
       .has_status = true},
      {.resource = kube::kSecrets,
       .rules = {set_secret_defaults, check_secret},
       .columns = "Name,Type,Data,Age",
       .cells = secret_cells},
      {.resource = kube::kServiceAccounts,
       .short_names = {"sa"},
       .columns = "Name,Secrets,Age",
       .cells = service_account_cells},
  };
}

}  // namespace trainer::local
