// Kinds with few rules of their own.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "controller/local/kinds/cells.hh"
#include "controller/local/kinds/kinds.hh"
#include "kube/model/digest.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"

namespace trainer::local {
namespace {

using kube::Resource;
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

// Keys of a map, and how many bytes its values have; `is_encoded`: they are base64.
std::size_t check_data(const Json& object, std::string_view member, bool is_encoded,
                       FieldErrors& errors) {
  std::size_t size = 0;
  for (const auto& [key, value] : object.get_object(member)) {
    check_key(key, member, errors);
    const std::string text = value.is_string() ? value.as_string() : "";
    const auto data = is_encoded ? kube::base64_decode(text) : std::optional(text);
    if (!data)
      errors.push_back(kube::invalid(kube::join_key(member, key), "<hidden>", "must be base64"));
    size += data ? data->size() : 0;
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
  if (size > kMaxData) errors.push_back(kube::too_long("", kMaxData));
  check_immutable_data(map, before, {"data", "binaryData"}, errors);
  return errors;
}

void set_secret_defaults(Json& secret) {
  set_default(secret, "type", "Opaque");
  for (const auto& [key, value] : secret.get_object("stringData"))
    if (value.is_string()) secret["data"].set(key, kube::base64_encode(value.as_string()));
  secret.erase("stringData");
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
  // Of an object without a namespace the events are in "default".
  if (ns == about || (about.empty() && ns == "default")) return {};
  return {kube::invalid("involvedObject.namespace", about, "does not match event.namespace")};
}

// ---- PersistentVolumeClaims

void set_claim_defaults(Json& claim) {
  kube::canonicalise_quantities(claim);
  if (Json* spec = claim.find("spec")) set_default(*spec, "volumeMode", "Filesystem");
  set_default(claim["status"], "phase", "Pending");
}

// All but what may change: the request of a bound claim, and the volume that binds it.
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
  const bool is_going = claim.get("metadata").find("deletionTimestamp") != nullptr;
  const bool is_bound = !spec.get_string("volumeName").empty();
  return Json::array({name_of(claim), is_going ? "Terminating" : status.get_string("phase"),
                      spec.get_string("volumeName"),
                      is_bound ? status.get("capacity").get_string("storage") : std::string_view(),
                      is_bound ? access_modes(status) : "", spec.get_string("storageClassName"),
                      text_or(spec, "volumeAttributesClassName", "<unset>"), age_of(claim, now),
                      text_or(spec, "volumeMode", "<unset>")});
}

// ---- other groups

Json service_account_cells(const Json& account, Time now) {
  const auto count = static_cast<std::int64_t>(account.get("secrets").size());
  return Json::array({name_of(account), count, age_of(account, now)});
}

// Of kinds without a printer: the time itself.
Json created_cells(const Json& object, Time) {
  return Json::array({name_of(object), object.get("metadata").get("creationTimestamp")});
}

Json lease_cells(const Json& lease, Time now) {
  return Json::array(
      {name_of(lease), lease.get("spec").get_string("holderIdentity"), age_of(lease, now)});
}

Json priority_class_cells(const Json& priority, Time now) {
  return Json::array({name_of(priority), priority.get_int("value"),
                      priority.get_bool("globalDefault"), age_of(priority, now),
                      priority.get_string("preemptionPolicy")});
}

std::string subjects(const Json& binding, std::string_view kind) {
  std::vector<std::string> names;
  for (const Json& subject : binding.get_array("subjects")) {
    if (subject.get_string("kind") != kind) continue;
    const std::string ns(subject.get_string("namespace"));
    names.push_back((ns.empty() ? "" : ns + "/") + std::string(subject.get_string("name")));
  }
  return join(names, ", ");
}

Json role_binding_cells(const Json& binding, Time now) {
  const Json& role = binding.get("roleRef");
  return Json::array({name_of(binding),
                      fmt::format("{}/{}", role.get_string("kind"), role.get_string("name")),
                      age_of(binding, now), subjects(binding, "User"), subjects(binding, "Group"),
                      subjects(binding, "ServiceAccount")});
}

// Nothing scales here: what is measured is not known.
Json autoscaler_cells(const Json& scaler, Time now) {
  const Json& spec = scaler.get("spec");
  const Json& target = spec.get("scaleTargetRef");
  return Json::array({name_of(scaler),
                      fmt::format("{}/{}", target.get_string("kind"), target.get_string("name")),
                      spec.get_array("metrics").empty() ? "<none>" : "<unknown>",
                      std::to_string(spec.get_int("minReplicas")), spec.get_int("maxReplicas"),
                      scaler.get("status").get_int("currentReplicas"), age_of(scaler, now)});
}

void set_autoscaler_defaults(Json& scaler) {
  if (Json* spec = scaler.find("spec")) set_default(*spec, "minReplicas", 1);
}

void set_priority_defaults(Json& priority) {
  set_default(priority, "value", 0);
  set_default(priority, "preemptionPolicy", "PreemptLowerPriority");
}

void set_role_ref_defaults(Json& binding) {
  if (Json* role = binding.find("roleRef"))
    set_default(*role, "apiGroup", "rbac.authorization.k8s.io");
}

void set_crd_defaults(Json& crd) {
  const auto condition = [](std::string_view type, std::string_view reason,
                            std::string_view message) {
    return Json::object(
        {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", message}});
  };
  Json stored = Json::array();
  for (const Json& version : crd.get("spec").get_array("versions"))
    if (version.get_bool("storage")) stored.push_back(version.get("name"));
  set_default(crd["status"], "acceptedNames", Json(crd.get("spec").get("names")));
  set_default(crd["status"], "storedVersions", std::move(stored));
  set_default(crd["status"], "conditions",
              Json::array({condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                           condition("Established", "InitialNamesAccepted",
                                     "the initial names have been accepted")}));
}

// What a kind has besides its name and its schema.
struct Entry {
  Resource resource;
  std::vector<std::string> short_names;
  Rules rules = {};
  bool has_status = false;
  std::vector<kube::server::Column> columns;
  Json (*cells)(const Json& object, Time now);
};

ServedKind make(const BuiltinTypes& types, Entry entry) {
  ServedKind kind = builtin_kind(types, entry.resource, std::move(entry.short_names), entry.rules);
  kind.has_status = entry.has_status;
  kind.columns = std::move(entry.columns);
  kind.cells = entry.cells;
  return kind;
}

}  // namespace

ServedKind builtin_kind(const BuiltinTypes& types, const Resource& resource,
                        std::vector<std::string> short_names, Rules rules) {
  ServedKind kind;
  kind.resource = resource;
  for (const char c : resource.kind)
    kind.singular += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  kind.short_names = std::move(short_names);
  kind.merge_keys = types.merge_keys(resource.kind);
  kind.has_generation = false;
  use_schema(kind, types.schema(resource.kind), rules);
  return kind;
}

kube::server::ServedKinds core_kinds(const BuiltinTypes& types) {
  const Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
  const auto events = columns_of({{"Last Seen"},
                                  {"Type"},
                                  {"Reason"},
                                  {"Object"},
                                  {"Subobject", 1},
                                  {"Source", 1},
                                  {"Message"},
                                  {"First Seen", 1},
                                  {"Count", 1},
                                  {"Name", 1}});
  const auto nodes = columns_of({{"Name"},
                                 {"Status"},
                                 {"Roles"},
                                 {"Age"},
                                 {"Version"},
                                 {"Internal-IP", 1},
                                 {"External-IP", 1},
                                 {"OS-Image", 1},
                                 {"Kernel-Version", 1},
                                 {"Container-Runtime", 1}});
  const auto claims = columns_of({{"Name"},
                                  {"Status"},
                                  {"Volume"},
                                  {"Capacity"},
                                  {"Access Modes"},
                                  {"StorageClass"},
                                  {"VolumeAttributesClass"},
                                  {"Age"},
                                  {"VolumeMode", 1}});
  const auto data = columns_of({{"Name"}, {"Data"}, {"Age"}});
  const auto typed_data = columns_of({{"Name"}, {"Type"}, {"Data"}, {"Age"}});
  const auto status = columns_of({{"Name"}, {"Status"}, {"Age"}});
  const auto secrets = columns_of({{"Name"}, {"Secrets"}, {"Age"}});
  const Rules of_secrets{set_secret_defaults, check_secret};
  const Rules of_namespaces{set_namespace_defaults};
  const Rules of_claims{set_claim_defaults, check_claim};
  return {
      make(types,
           {kube::kConfigMaps, {"cm"}, {nullptr, check_config_map}, false, data, config_map_cells}),
      make(types, {kube::kEvents, {"ev"}, {nullptr, check_event}, false, events, event_cells}),
      make(types, {kube::kNamespaces, {"ns"}, of_namespaces, true, status, namespace_cells}),
      make(types, {kube::kNodes, {"no"}, {set_node_defaults}, true, nodes, node_cells}),
      make(types, {kube::kPersistentVolumeClaims, {"pvc"}, of_claims, true, claims, claim_cells}),
      make(types, {kube::kSecrets, {}, of_secrets, false, typed_data, secret_cells}),
      make(types, {accounts, {"sa"}, {}, false, secrets, service_account_cells}),
  };
}

kube::server::ServedKinds other_kinds(const BuiltinTypes& types) {
  const std::string rbac = "rbac.authorization.k8s.io";
  const Resource scalers{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
                         true};
  const Resource roles{rbac, "v1", "roles", "Role", true};
  const Resource bindings{rbac, "v1", "rolebindings", "RoleBinding", true};
  const auto scaling = columns_of(
      {{"Name"}, {"Reference"}, {"Targets"}, {"MinPods"}, {"MaxPods"}, {"Replicas"}, {"Age"}});
  const auto bound = columns_of(
      {{"Name"}, {"Role"}, {"Age"}, {"Users", 1}, {"Groups", 1}, {"ServiceAccounts", 1}});
  const auto created = columns_of({{"Name"}, {"Created At"}});
  const auto held = columns_of({{"Name"}, {"Holder"}, {"Age"}});
  const auto priority =
      columns_of({{"Name"}, {"Value"}, {"Global-Default"}, {"Age"}, {"PreemptionPolicy", 1}});
  ServedKind priorities = make(types, {kube::kPriorityClasses,
                                       {"pc"},
                                       {set_priority_defaults},
                                       false,
                                       priority,
                                       priority_class_cells});
  priorities.has_generation = true;
  ServedKind autoscalers =
      make(types, {scalers, {"hpa"}, {set_autoscaler_defaults}, true, scaling, autoscaler_cells});
  autoscalers.categories = {"all"};
  return {std::move(autoscalers), make(types, {roles, {}, {}, false, created, created_cells}),
          make(types, {bindings, {}, {set_role_ref_defaults}, false, bound, role_binding_cells}),
          make(types, {kube::kLeases, {}, {}, false, held, lease_cells}), std::move(priorities)};
}

// Stored, and served where the process that holds the store makes a kind of it (kinds_of_crd). Its
// schema refers to itself, so there is none here.
ServedKind crd_kind() {
  ServedKind kind;
  kind.resource = {"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                   "CustomResourceDefinition", false};
  kind.singular = "customresourcedefinition";
  kind.short_names = {"crd", "crds"};
  kind.categories = {"api-extensions"};
  kind.columns = columns_of({{"Name"}, {"Created At"}});
  kind.has_status = true;
  kind.cells = created_cells;
  kind.set_defaults = set_crd_defaults;
  return kind;
}

}  // namespace trainer::local
