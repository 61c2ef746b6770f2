#include "local/node/env.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"

namespace trainer::node {

namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::StringMap;

void add_name(std::set<std::string>& names, const Json& reference,
              std::string_view member = "name") {
  const std::string_view name = reference.get_string(member);
  if (!name.empty()) names.emplace(name);
}

void add_volume_sources(SourceNames& names, const Json& volume) {
  add_name(names.config_maps, volume.get("configMap"));
  add_name(names.secrets, volume.get("secret"), "secretName");
  add_name(names.secrets, volume.get("secret"));  // projected volumes have it in this form
}

// metadata.labels['KEY'] -> KEY
std::optional<std::string> subscript(std::string_view path, std::string_view map) {
  if (!path.starts_with(map)) return std::nullopt;
  path.remove_prefix(map.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return std::string(path.substr(2, path.size() - 4));
}

std::string map_lines(const Json& map) {
  std::string text;
  if (!map.is_object()) return text;
  for (const auto& [key, value] : map.as_object())
    text += key + "=" + kube::print_json(value) + "\n";
  return text;
}

kube::Quantity amount_of(const Json& container, std::string_view resource, const PodFacts& facts) {
  const auto dot = resource.find('.');
  const std::string_view kind = resource.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? "" : resource.substr(dot + 1);
  const kube::ResourceList amounts = kube::read_resources(container, kind);
  if (const auto found = amounts.find(name); found != amounts.end()) return found->second;
  const auto found = facts.allocatable.find(name);
  const bool is_limit = kind == "limits" && found != facts.allocatable.end();
  return is_limit ? found->second : kube::Quantity();
}

// Returns one key of a ConfigMap or Secret. nullopt says that it is optional and does not exist.
Result<std::optional<std::string>> key_value(const Json& selector, bool is_secret,
                                             const Sources& sources) {
  const auto& known = is_secret ? sources.secrets : sources.config_maps;
  const std::string_view kind = is_secret ? "Secret" : "ConfigMap";
  const std::string name(selector.get_string("name")), key(selector.get_string("key"));
  const auto object = known.find(name);
  if (object == known.end()) {
    if (selector.get_bool("optional")) return std::nullopt;
    return kube::fail(ErrorCode::kNotFound, "{} \"{}\" not found", kind, name);
  }
  const auto data = data_of(object->second, is_secret);
  if (const auto value = data.find(key); value != data.end()) return value->second;
  if (selector.get_bool("optional")) return std::nullopt;
  return kube::fail(ErrorCode::kNotFound, "{} \"{}\" has no key \"{}\"", kind, name, key);
}

Result<std::optional<std::string>> value_from(const Json& pod, const Json& container,
                                              const Json& from, const Sources& sources,
                                              const PodFacts& facts) {
  if (const Json* field = from.find("fieldRef"))
    return field_value(pod, field->get_string("fieldPath"), facts);
  if (const Json* resource = from.find("resourceFieldRef"))
    return resource_value(pod, container, *resource, facts);
  if (const Json* key = from.find("configMapKeyRef")) return key_value(*key, false, sources);
  if (const Json* key = from.find("secretKeyRef")) return key_value(*key, true, sources);
  return kube::fail(ErrorCode::kUnsupported, "valueFrom: of this source nothing is known here");
}

Result<void> add_all_of(StringMap& variables, const Json& from, const Sources& sources) {
  for (const bool is_secret : {false, true}) {
    const Json* reference = from.find(is_secret ? "secretRef" : "configMapRef");
    if (reference == nullptr) continue;
    const auto& known = is_secret ? sources.secrets : sources.config_maps;
    const auto object = known.find(reference->get_string("name"));
    if (object != known.end()) {
      for (const auto& [key, value] : data_of(object->second, is_secret))
        variables[std::string(from.get_string("prefix")) + key] = value;
    } else if (!reference->get_bool("optional")) {
      return kube::fail(ErrorCode::kNotFound, "envFrom: {} \"{}\" not found",
                        is_secret ? "Secret" : "ConfigMap", reference->get_string("name"));
    }
  }
  return {};
}

}  // namespace

TokenSource token_source_of(const Json& service_account_token) {
  // The default is that of kube-apiserver (kubernetes, pkg/apis/core/v1/defaults.go).
  constexpr std::int64_t kUsual = 3'600;
  return {std::string(service_account_token.get_string("audience")),
          service_account_token.get_int("expirationSeconds", kUsual)};
}

SourceNames sources_of(const Json& pod) {
  SourceNames names;
  const Json& spec = pod.get("spec");
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : spec.get_array(list)) {
      for (const Json& from : container.get_array("envFrom")) {
        add_name(names.config_maps, from.get("configMapRef"));
        add_name(names.secrets, from.get("secretRef"));
      }
      for (const Json& variable : container.get_array("env")) {
        add_name(names.config_maps, variable.get_path({"valueFrom", "configMapKeyRef"}));
        add_name(names.secrets, variable.get_path({"valueFrom", "secretKeyRef"}));
      }
    }
  }
  for (const Json& volume : spec.get_array("volumes")) {
    add_volume_sources(names, volume);
    add_name(names.claims, volume.get("persistentVolumeClaim"), "claimName");
    for (const Json& source : volume.get("projected").get_array("sources")) {
      add_volume_sources(names, source);
      // A token without audience is for the API, which accepts none, so that none is made.
      const Json* token = source.find("serviceAccountToken");
      if (token != nullptr && !token->get_string("audience").empty())
        names.tokens.insert(token_source_of(*token));
    }
  }
  return names;
}

std::map<std::string, std::string> data_of(const Json& object, bool is_secret) {
  std::map<std::string, std::string> data;
  const auto add_decoded = [&data](const Json::Object& members) {
    for (const auto& [key, value] : members)
      if (value.is_string()) data[key] = kube::base64_decode(value.as_string()).value_or("");
  };
  if (is_secret) {
    add_decoded(object.get_object("data"));
  } else {
    for (const auto& [key, value] : object.get_object("data"))
      if (value.is_string()) data[key] = value.as_string();
    add_decoded(object.get_object("binaryData"));
  }
  return data;
}

Result<std::string> field_value(const Json& pod, std::string_view path, const PodFacts& facts) {
  const Json& metadata = pod.get("metadata");
  for (const char* map : {"labels", "annotations"}) {
    const std::string whole = std::string("metadata.") + map;
    if (path == whole) return map_lines(metadata.get(map));
    if (const auto key = subscript(path, whole))
      return std::string(metadata.get(map).get_string(*key));
  }
  for (const char* member : {"name", "namespace", "uid"})
    if (path == std::string("metadata.") + member) return std::string(metadata.get_string(member));
  if (path == "spec.nodeName") return facts.node_name;
  if (path == "spec.serviceAccountName")
    return std::string(pod.get("spec").get_string("serviceAccountName", "default"));
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_address;
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_address;
  return kube::fail(ErrorCode::kUnsupported, "fieldPath \"{}\" is not known here", path);
}

Result<std::string> resource_value(const Json& pod, const Json& container, const Json& selector,
                                   const PodFacts& facts) {
  const Json* from = &container;
  const std::string_view name = selector.get_string("containerName");
  for (const Json& other : pod.get("spec").get_array("containers"))
    if (other.get_string("name") == name) from = &other;
  kube::Quantity amount = amount_of(*from, selector.get_string("resource"), facts);
  auto divisor = kube::Quantity::read(selector.get("divisor"));
  if (!divisor || divisor->is_zero()) divisor = kube::Quantity::of(1);
  // The amount is in thousandths: the smallest divisor is 1m.
  amount *= 1'000;
  *divisor *= 1'000;
  const std::int64_t whole = amount.value(), part = std::max<std::int64_t>(divisor->value(), 1);
  return fmt::format("{}", whole / part + (whole % part > 0 ? 1 : 0));
}

Result<StringMap> declared_env(const Json& pod, const Json& container, const Sources& sources,
                               const PodFacts& facts) {
  StringMap variables;
  const std::string_view container_name = container.get_string("name");
  for (const Json& from : container.get_array("envFrom")) {
    if (auto added = add_all_of(variables, from, sources); !added)
      return tl::unexpected(added.error().at(container_name));
  }
  for (const Json& variable : container.get_array("env")) {
    const std::string name(variable.get_string("name"));
    const Json* from = variable.find("valueFrom");
    if (from == nullptr || from->is_null()) {
      variables[name] = expand(variable.get_string("value"), variables);
      continue;
    }
    auto value = value_from(pod, container, *from, sources, facts);
    if (!value) return tl::unexpected(value.error().at(name).at(container_name));
    if (*value) variables[name] = std::move(**value);
  }
  return variables;
}

std::string expand(std::string_view text, const StringMap& variables) {
  std::string expanded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '$' && i + 1 < text.size() ? text[i + 1] : '\0';
    const std::size_t end = next == '(' ? text.find(')', i) : std::string_view::npos;
    if (next == '$') {
      expanded += '$';
      ++i;
    } else if (end != std::string_view::npos) {
      const auto found = variables.find(text.substr(i + 2, end - i - 2));
      expanded +=
          found != variables.end() ? std::string_view(found->second) : text.substr(i, end - i + 1);
      i = end;
    } else {
      expanded += text[i];
    }
  }
  return expanded;
}

StringMap base_environment(const char* const* variables) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "MASTER_ADDR", "MASTER_PORT", "RANK",   "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE",
      "KUBECONFIG",  "PWD",         "OLDPWD", "SHLVL",      "_",         "HOSTNAME"};
  static constexpr std::array<std::string_view, 7> kPrefixes = {
      "PET_", "TORCHELASTIC_", "KUBERNETES_", "KUBEFLOW_TRAINER_", "OMPI_", "PMI", "TRAINER_"};
  StringMap kept;
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view text(*variables);
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_left_out =
        std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
        std::any_of(kPrefixes.begin(), kPrefixes.end(),
                    [name](std::string_view prefix) { return name.starts_with(prefix); });
    if (!is_left_out && name.size() < text.size() && kube::is_utf8(text))
      kept[std::string(name)] = text.substr(name.size() + 1);
  }
  return kept;
}

}  // namespace trainer::node
