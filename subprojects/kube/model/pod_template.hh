// These functions edit a pod template that stays Json: nothing that it holds is ever lost, known or
// unknown.
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

// All functions take a stored container, or a pod template (`{metadata, spec}`); absent lists are
// made when they are needed. The find functions and readers skip members of wrong types; the others
// throw, since what they edit was validated.
Json* find_container(Json& pod_template, std::string_view name);  // spec.containers only
Json* find_any_container(Json& pod_template,
                         std::string_view name);  // containers first, then initContainers
const Json* find_container(const Json& pod_template, std::string_view name);
const Json* find_any_container(const Json& pod_template, std::string_view name);

// Returns a container's variable; the first of this name.
const Json* find_env(const Json& container, std::string_view name);
// Replaces the entry of the same name in place, else appends. Functions with a result return the
// replaced entry if it was different; null if there was none.
Json upsert_env(Json& container, Json env_var);
Json upsert_env(Json& container, std::string_view name, std::string_view value);
void upsert_env(Json& container, Json::Array env_vars);  // one after the other, in linear time
// Ports are equal by containerPort, or by name if two unnamed ports count as the same (upstream's
// rule).
Json upsert_port(Json& container, Json port);
Json upsert_volume(Json& pod_template, Json volume);  // compares by name, replaces the whole entry
// Compares by mountPath, replaces the whole entry.
Json upsert_volume_mount(Json& container, Json mount);
void add_labels(Json& pod_template, const StringMap& labels);
void add_annotations(Json& pod_template, const StringMap& annotations);

// Entries that are no quantities are left out.
ResourceList read_resource_list(const Json::Object& amounts);
// Reads a container's requests or limits in the same way.
ResourceList read_resources(const Json& container, std::string_view requests_or_limits);

// Computes what k8s.io/component-helpers/resource.PodRequests does. It is the sum of the containers
// and sidecars, or the largest init container with the sidecars before it, whichever is more. If
// spec.resources has cpu, memory or hugepages, these replace the sum. spec.overhead is added. A
// container's limit counts as its request if it has none, since the API server sets this default
// for pods.
ResourceList pod_requests(const Json& pod_template);

// Prints amounts (limits, requests, overhead, capacity, sizeLimit, divisor) at any depth like the
// API machinery: "2" for 2, "500m" for 0.5, "1Gi" for 1024Mi. Values that are no quantities stay
// unchanged.
void canonicalise_quantities(Json& value);

// Changes a pod template, or an object that has some, to the form in which a client with Go types
// writes it back. Amounts are canonical. Values are removed that such a client cannot distinguish
// from absence: null, empty lists, and the zero values of members that are no pointers, by the
// declarations of k8s.io/api/core/v1. Pointers keep their zeros (backoffLimit,
// automountServiceAccountToken), and so do maps of strings, such as labels. Empty objects stay,
// whether they say something ("emptyDir: {}") or not ("limits: {}").
void write_as_go(Json& value);

inline constexpr int kDefaultGraceSeconds = 30;
// Returns how long a pod may take to end, in seconds, by its spec.
std::int64_t termination_grace(const Json& pod);

// Returns whether a pod has ended, by its phase.
bool is_pod_over(const Json& pod);

}  // namespace kube
