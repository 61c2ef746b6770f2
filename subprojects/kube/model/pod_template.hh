// Edits of a pod template that stays Json: nothing it holds is ever lost, known or unknown.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/quantity.hh"

namespace kube {

using ResourceList = std::map<std::string, Quantity, std::less<>>;

// All functions take a container, or a pod template (`{metadata, spec}`), as stored; absent lists
// are made on demand. The find functions and readers pass over members of wrong types; the others
// throw, since what they edit was validated.
Json* find_container(Json& pod_template, std::string_view name);  // spec.containers only
Json* find_any_container(Json& pod_template,
                         std::string_view name);  // containers first, then initContainers
const Json* find_container(const Json& pod_template, std::string_view name);
const Json* find_any_container(const Json& pod_template, std::string_view name);

// A container's variable; the first of this name.
const Json* find_env(const Json& container, std::string_view name);
// Replaces the entry of the same name in place, else appends. Those that answer an entry answer the
// one that was replaced and said something else; null where there was none.
Json upsert_env(Json& container, Json env_var);
Json upsert_env(Json& container, std::string_view name, std::string_view value);
void upsert_env(Json& container, Json::Array env_vars);  // one after the other, in linear time
// By containerPort, or by name where two unnamed ports count as the same (upstream's rule).
Json upsert_port(Json& container, Json port);
Json upsert_volume(Json& pod_template, Json volume);    // by name, the whole entry
Json upsert_volume_mount(Json& container, Json mount);  // by mountPath, the whole entry
void add_labels(Json& pod_template, const StringMap& labels);
void add_annotations(Json& pod_template, const StringMap& annotations);

// Entries that are no quantities are left out.
ResourceList read_resource_list(const Json::Object& amounts);
// A container's requests or limits, likewise.
ResourceList read_resources(const Json& container, std::string_view requests_or_limits);

// k8s.io/component-helpers/resource.PodRequests: sum of the containers and sidecars, or the largest
// init container with the sidecars before it, whichever is more; then cpu, memory and hugepages of
// spec.resources instead, where it has them; plus spec.overhead. A container's limit counts as its
// request where it has none, as the API server defaults it for pods.
ResourceList pod_requests(const Json& pod_template);

// Amounts (limits, requests, overhead, capacity, sizeLimit, divisor) at any depth as the API
// machinery prints them: "2" for 2, "500m" for 0.5, "1Gi" for 1024Mi. What is no quantity stays.
void canonicalise_quantities(Json& value);

// A pod template, or an object that has some, as a client with Go types writes it back: amounts are
// canonical, and what such a client cannot distinguish from absence is gone (null, empty lists, the
// zero values of members that are no pointers, as k8s.io/api/core/v1 declares them). Pointers keep
// their zeros (backoffLimit, automountServiceAccountToken), and so do maps of strings, such as
// labels. Empty objects stay, whether they say something ("emptyDir: {}") or not ("limits: {}").
void write_as_go(Json& value);

inline constexpr int kDefaultGraceSeconds = 30;
// How long a pod may take to end, in seconds, as its spec says.
std::int64_t termination_grace(const Json& pod);

// Whether a pod has ended, as its phase says.
bool is_pod_over(const Json& pod);

}  // namespace kube
