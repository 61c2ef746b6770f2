#include "kube/server/discovery.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/server/accept.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/openapi.hh"

namespace kube::server {
namespace {

constexpr std::string_view kAggregatedType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

struct Version {
  std::string name;
  std::vector<const ServedKind*> kinds;
};

struct Group {
  std::string name;  // "" for core
  std::vector<Version> versions;
};

// Returns the element with this name; if there is none, it is made at the end.
template <class T>
T& named(std::vector<T>& elements, const std::string& name) {
  const auto at = std::find_if(elements.begin(), elements.end(),
                               [&name](const T& element) { return element.name == name; });
  return at != elements.end() ? *at : elements.emplace_back(T{name, {}});
}

// The groups are in the order of the kinds; the first version of a group is the preferred one.
std::vector<Group> groups_of(const ServedKinds& kinds) {
  std::vector<Group> groups;
  for (const ServedKind& kind : kinds) {
    Group& group = named(groups, kind.resource.group);
    named(group.versions, kind.resource.version).kinds.push_back(&kind);
  }
  return groups;
}

const Group* find_group(const std::vector<Group>& groups, std::string_view name) {
  const auto at = std::find_if(groups.begin(), groups.end(),
                               [name](const Group& group) { return group.name == name; });
  return at == groups.end() ? nullptr : &*at;
}

struct Subresource {
  std::string name;
  std::string group, version, kind;  // the kind that it answers with
  Json verbs;
};

std::vector<Subresource> subresources_of(const ServedKind& kind) {
  const Resource& resource = kind.resource;
  std::vector<Subresource> found;
  if (resource.group.empty() && resource.kind == "Pod")
    found.push_back({"log", "", "v1", "Pod", Json::array({"get"})});
  if (kind.scale)
    found.push_back(
        {"scale", "autoscaling", "v1", "Scale", Json::array({"get", "patch", "update"})});
  if (kind.has_status)
    found.push_back({"status", resource.group, resource.version, resource.kind,
                     Json::array({"get", "patch", "update"})});
  return found;
}

// The verbs are in the order of the genuine server.
Json resource_verbs(const Resource& resource) {
  if (is_custom(resource))
    return Json::array(
        {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"});
  return Json::array(
      {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"});
}

Json strings(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

void set_names(Json& out, const ServedKind& kind) {
  if (!kind.short_names.empty()) out.set("shortNames", strings(kind.short_names));
  if (!kind.categories.empty()) out.set("categories", strings(kind.categories));
}

Json kind_of(std::string_view group, std::string_view version, std::string_view kind) {
  return Json::object({{"group", group}, {"version", version}, {"kind", kind}});
}

// ---- the aggregated form

Json aggregated(const ServedKind& kind) {
  const Resource& resource = kind.resource;
  Json out =
      Json::object({{"resource", resource.plural},
                    {"responseKind", kind_of(resource.group, resource.version, resource.kind)},
                    {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
                    {"singularResource", kind.singular},
                    {"verbs", resource_verbs(resource)}});
  set_names(out, kind);
  for (Subresource& below : subresources_of(kind))
    out["subresources"].push_back(
        Json::object({{"subresource", below.name},
                      {"responseKind", kind_of(below.group, below.version, below.kind)},
                      {"verbs", std::move(below.verbs)}}));
  return out;
}

Json aggregated(const Group& group) {
  Json::Array versions;
  for (const Version& version : group.versions) {
    Json::Array resources;
    for (const ServedKind* kind : version.kinds) resources.push_back(aggregated(*kind));
    versions.push_back(Json::object({{"version", version.name},
                                     {"resources", std::move(resources)},
                                     {"freshness", "Current"}}));
  }
  return Json::object(
      {{"metadata", group.name.empty() ? Json::object() : Json::object({{"name", group.name}})},
       {"versions", std::move(versions)}});
}

// Lists the core group, or all others.
Response aggregated_list(const std::vector<Group>& groups, bool is_core) {
  Json::Array items;
  for (const Group& group : groups)
    if (group.name.empty() == is_core) items.push_back(aggregated(group));
  Response response = json_response(200, Json::object({{"kind", "APIGroupDiscoveryList"},
                                                       {"apiVersion", "apidiscovery.k8s.io/v2"},
                                                       {"metadata", Json::object()},
                                                       {"items", std::move(items)}}));
  response.content_type = kAggregatedType;
  return response;
}

// ---- the older lists

Json group_document(const Group& group) {
  Json::Array versions;
  for (const Version& version : group.versions)
    versions.push_back(Json::object(
        {{"groupVersion", group.name + "/" + version.name}, {"version", version.name}}));
  Json preferred = versions.front();
  return Json::object({{"name", group.name},
                       {"versions", std::move(versions)},
                       {"preferredVersion", std::move(preferred)}});
}

Json group_list(const std::vector<Group>& groups) {
  Json::Array documents;
  for (const Group& group : groups)
    if (!group.name.empty()) documents.push_back(group_document(group));
  return Json::object(
      {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(documents)}});
}

Json core_versions(const std::vector<Group>& groups) {
  Json::Array names;
  if (const Group* core = find_group(groups, ""))
    for (const Version& version : core->versions) names.emplace_back(version.name);
  return Json::object({{"kind", "APIVersions"},
                       {"versions", std::move(names)},
                       {"serverAddressByClientCIDRs", Json::array()}});
}

Json resource_list(const Group& group, const Version& version) {
  Json::Array resources;
  for (const ServedKind* kind : version.kinds) {
    const Resource& resource = kind->resource;
    Json out = Json::object({{"name", resource.plural},
                             {"singularName", kind->singular},
                             {"namespaced", resource.namespaced},
                             {"kind", resource.kind},
                             {"verbs", resource_verbs(resource)}});
    set_names(out, *kind);
    resources.push_back(std::move(out));
    for (Subresource& below : subresources_of(*kind)) {
      Json entry = Json::object({{"name", resource.plural + "/" + below.name},
                                 {"singularName", ""},
                                 {"namespaced", resource.namespaced},
                                 {"kind", below.kind},
                                 {"verbs", std::move(below.verbs)}});
      if (below.group != resource.group)
        entry.set("group", below.group).set("version", below.version);
      resources.push_back(std::move(entry));
    }
  }
  const std::string name = group.name.empty() ? version.name : group.name + "/" + version.name;
  return Json::object({{"kind", "APIResourceList"},
                       {"apiVersion", "v1"},
                       {"groupVersion", name},
                       {"resources", std::move(resources)}});
}

std::optional<Response> answer_version(const std::vector<Group>& groups, std::string_view group,
                                       std::string_view version) {
  const Group* found = find_group(groups, group);
  if (found == nullptr) return std::nullopt;
  for (const Version& each : found->versions)
    if (each.name == version) return json_response(200, resource_list(*found, each));
  return std::nullopt;
}

// `name` is "GROUP" or "GROUP/VERSION".
std::optional<Response> answer_group(const std::vector<Group>& groups, std::string_view name) {
  if (const std::size_t slash = name.find('/'); slash != name.npos)
    return answer_version(groups, name.substr(0, slash), name.substr(slash + 1));
  const Group* group = name.empty() ? nullptr : find_group(groups, name);
  if (group == nullptr) return std::nullopt;
  Json document = group_document(*group);
  document.set("kind", "APIGroup").set("apiVersion", "v1");
  return json_response(200, document);
}

Json version_document(const ServerVersion& version) {
  return Json::object({{"major", version.major},
                       {"minor", version.minor},
                       {"gitVersion", version.git_version},
                       {"gitCommit", ""},
                       {"gitTreeState", "clean"},
                       {"buildDate", "1970-01-01T00:00:00Z"},
                       {"goVersion", ""},
                       {"compiler", ""},
                       {"platform", version.platform}});
}

// The document has no types. kubectl asks for it to find a kind that version 3 does not have, and
// takes an answer of 404 for an error of its own. It is a Document of gnostic's openapi.v2, whose
// field 1 is `swagger`.
Response empty_openapi_v2(std::string_view accept) {
  if (accept.find("+protobuf") != accept.npos)
    return {200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "\n\0032.0", {}};
  return json_response(
      200, Json::object({{"swagger", "2.0"},
                         {"info", Json::object({{"title", "Kubernetes"}, {"version", "v1"}})},
                         {"paths", Json::object()}}));
}

std::optional<Response> answer_openapi(const ServedKinds& kinds, std::string_view path) {
  if (path.empty()) return json_response(200, openapi_index(kinds));
  const auto document = openapi_document(kinds, path.substr(1));
  if (!document) return std::nullopt;
  return json_response(200, *document);
}

}  // namespace

std::optional<Response> answer_discovery(const ServedKinds& kinds, const Request& request,
                                         std::string_view path, const ServerVersion& version) {
  if (request.method != "GET") return std::nullopt;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/version") return json_response(200, version_document(version));
  if (path == "/healthz" || path == "/livez" || path == "/readyz")
    return Response{200, "text/plain; charset=utf-8", "ok", {}};
  constexpr std::string_view kOpenApi = "/openapi/v3";
  if (path == kOpenApi || path.starts_with("/openapi/v3/"))
    return answer_openapi(kinds, path.substr(kOpenApi.size()));
  if (path == "/openapi/v2") return empty_openapi_v2(request.accept);
  if (!path.starts_with("/api")) return std::nullopt;
  const std::vector<Group> groups = groups_of(kinds);
  const bool is_aggregated =
      wants_form(request.accept, "APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2");
  if (path == "/api")
    return is_aggregated ? aggregated_list(groups, true)
                         : json_response(200, core_versions(groups));
  if (path == "/apis")
    return is_aggregated ? aggregated_list(groups, false) : json_response(200, group_list(groups));
  if (path.starts_with("/api/")) return answer_version(groups, "", path.substr(5));
  if (path.starts_with("/apis/")) return answer_group(groups, path.substr(6));
  return std::nullopt;
}

}  // namespace kube::server
