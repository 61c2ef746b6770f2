// Every Kubernetes object has this metadata. It is typed if controllers decide by it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/json_text.hh"
#include "kube/model/time.hh"

namespace kube {

using StringMap = std::map<std::string, std::string, std::less<>>;

// Names one object of a known kind. `ns` is empty for cluster-scoped objects.
struct ObjectKey {
  std::string ns;
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
  std::string to_string() const { return ns.empty() ? name : ns + "/" + name; }
};

// This key finds an ObjectKey; its text is stored elsewhere.
struct ObjectKeyView {
  std::string_view ns;
  std::string_view name;
  friend bool operator==(const ObjectKey& key, const ObjectKeyView& view) {
    return key.name == view.name && key.ns == view.ns;
  }
};

// Containers without order use this hash. With std::equal_to<> they are searched by ObjectKeyView,
// too.
struct ObjectKeyHash {
  using is_transparent = void;
  std::size_t operator()(const ObjectKeyView& key) const {
    // A name may be in every namespace, and a namespace may have many names.
    const std::hash<std::string_view> hash;
    return hash(key.name) * 31 + hash(key.ns);
  }
  std::size_t operator()(const ObjectKey& key) const {
    return (*this)(ObjectKeyView{key.ns, key.name});
  }
};

// Requests address a resource of the API by these names.
struct Resource {
  std::string group;    // "" for core
  std::string version;  // "v1"
  std::string plural;   // "jobs"
  std::string kind;     // "Job"
  bool namespaced = true;
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  // Versions of a kind have the same objects.
  bool has_same_objects(const Resource& other) const {
    return group == other.group && plural == other.plural;
  }
  friend bool operator==(const Resource&, const Resource&) = default;
};

// Returns a filter of an object's metadata that keeps name, namespace, uid and resourceVersion, and
// the members of `more`.
JsonFilter metadata_with(std::vector<JsonFilter> more);

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool block_owner_deletion = false;
  Json to_json() const;
};

// Reading is lenient: a member of a wrong type counts as absent, since the API server has checked
// what it stored.
struct ObjectMeta {
  std::string name;
  std::string generate_name;
  std::string ns;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::optional<Time> creation_timestamp;
  std::optional<Time> deletion_timestamp;
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;

  // Reads the "metadata" member of a whole object.
  static ObjectMeta of(const Json& object);
  ObjectKey key() const { return {ns, name}; }
  // Returns the owner with `controller: true`, or nullptr.
  const OwnerReference* controller() const;
};

// Reads a map of strings; members that are no strings are left out.
StringMap read_string_map(const Json* value);
Json to_json(const StringMap& map);

// This is metav1.Condition.
struct Condition {
  std::string type;
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  std::optional<Time> last_transition_time;
  std::optional<std::int64_t> observed_generation;

  static Condition read(const Json& value);
  Json to_json() const;
  bool is_true() const { return status == "True"; }
  friend bool operator==(const Condition&, const Condition&) = default;
};

// Makes a text that begins with a letter a reason that the API accepts. It is cut after 1,024
// bytes. Characters other than letters, digits, "_", "," and ":" become "_", and so does "," or ":"
// at the end.
std::string condition_reason(std::string text);

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);
bool is_condition_true(const std::vector<Condition>& conditions, std::string_view type);
// Returns the condition of an object that stays Json; null if its status has none of this type.
const Json& condition_of(const Json& object, std::string_view type);
// Returns whether the object has the condition, and that is True.
bool has_condition(const Json& object, std::string_view type);
// Does the same as meta.SetStatusCondition: the transition time changes only if the status does (to
// condition.last_transition_time, else `now`). Returns whether anything changed.
bool set_condition(std::vector<Condition>& conditions, Condition condition, Time now);

// Orders resourceVersions of one collection: returns true if `a` is newer than `b`. Versions are
// decimal strings of any length; anything else compares as not newer.
bool is_newer_version(std::string_view a, std::string_view b);

}  // namespace kube
