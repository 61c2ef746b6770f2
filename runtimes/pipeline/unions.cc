#include "runtimes/pipeline/unions.hh"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "api/api.hh"
#include "kube/model/field_error.hh"
#include "kube/model/name_index.hh"
#include "kube/model/patch.hh"

namespace trainer::pipeline {

namespace {

using kube::Json;
using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> kEnv = {"value", "valueFrom"};
constexpr std::array<std::string_view, 4> kProbe = {"exec", "grpc", "httpGet", "tcpSocket"};
constexpr std::array<std::string_view, 4> kHandler = {"exec", "httpGet", "sleep", "tcpSocket"};

// The unions are validated by k8s.io/kubernetes, pkg/apis/core/validation/validation.go.
constexpr std::array<PodUnion, 9> kUnions = {{
    {"env", kEnv},           // validateEnvVarValueFrom: "may not be specified when `value` is ..."
    {"valueFrom", {}},       // "may not have more than one field specified at a time"
    {"volumes", {}},         // validateVolumeSource: "may not specify more than 1 volume type"
    {"resourceClaims", {}},  // validatePodResourceClaim: "exactly one of ..."
    {"livenessProbe", kProbe},  // validateHandler: "may not specify more than 1 handler type"
    {"readinessProbe", kProbe},
    {"startupProbe", kProbe},
    {"postStart", kHandler},
    {"preStop", kHandler},
}};
constexpr std::array<std::string_view, 2> kProfiles = {"appArmorProfile", "seccompProfile"};

bool is_one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_source(const PodUnion& of, std::string_view member) {
  return of.members.empty() ? member != "name" : is_one_of(member, of.members);
}

// Drops from `target` the source that one in `patch` replaces.
void drop_other_sources(const PodUnion& of, Json& target, const Json& patch) {
  const auto sets = [&](const Json::Object::Member& member) {
    return is_source(of, member.first) && !member.second.is_null();
  };
  if (std::none_of(patch.as_object().begin(), patch.as_object().end(), sets)) return;
  target.as_object().keep_if([&](const Json::Object::Member& member) {
    return !is_source(of, member.first) || patch.find(member.first) != nullptr;
  });
}

void drop_replaced(std::string_view field, Json& target, const Json& patch) {
  const auto* const at = std::find_if(kUnions.begin(), kUnions.end(),
                                      [field](const PodUnion& one) { return one.field == field; });
  if (at != kUnions.end()) drop_other_sources(*at, target, patch);
  if (!is_one_of(field, kProfiles) || patch.find("localhostProfile") != nullptr) return;
  if (const Json* type = patch.find("type"); type != nullptr && *type != Json("Localhost"))
    target.erase("localhostProfile");
}

// These are the items of a merged list that both have: change, target.
using Pairs = std::vector<std::pair<const Json*, Json*>>;

Pairs pairs_of(Json::Array& target, const Json::Array& patch, std::string_view key) {
  Pairs pairs;
  const auto key_of = [key](const Json& item) { return item.get_string(key); };
  const kube::NameIndex known(std::as_const(target), key_of);
  for (const Json& change : patch) {
    const std::string_view name = key_of(change);
    const auto at = name.empty() ? std::nullopt : known.find(name);
    if (at) pairs.emplace_back(&change, &target[*at]);
  }
  return pairs;
}

// Visits what both have, along the merge keys. `type` is the path for the table of keys.
void walk(Json& target, const Json& patch, const std::string& type) {
  for (const auto& [name, change] : patch.as_object()) {
    Json* member = target.find(name);
    if (member == nullptr) continue;
    const std::string below = kube::join_field(type, name);
    Pairs pairs;
    if (member->is_object() && change.is_object())
      pairs.emplace_back(&change, member);
    else if (const auto key = jobset_merge_keys().key_of(below);
             key && member->is_array() && change.is_array())
      pairs = pairs_of(member->as_array(), change.as_array(), *key);
    for (const auto& [what, item] : pairs) {
      drop_replaced(name, *item, *what);
      walk(*item, *what, below);
    }
  }
}

}  // namespace

std::span<const PodUnion> pod_unions() {
  return kUnions;
}

std::span<const std::string_view> pod_profiles() {
  return kProfiles;
}

kube::Result<kube::Json> merge_runtime_patch(kube::Json spec, const kube::Json& patch) {
  if (spec.is_object() && patch.is_object()) walk(spec, patch, "");
  return kube::strategic_merge(std::move(spec), patch, jobset_merge_keys());
}

}  // namespace trainer::pipeline
