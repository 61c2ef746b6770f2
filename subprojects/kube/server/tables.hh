// `kubectl get` asks for Tables and prints them (k8s.io/apimachinery, metav1.Table). Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Returns whether the first form in an Accept header that can be answered is a Table.
bool wants_table(std::string_view accept);

// Returns a Table of objects. `list_metadata` is the metadata of the list. `include_object` says
// what a row holds: the whole object ("Object"), nothing ("None"), or else its metadata. A watch
// sends one row a line, and `columnDefinitions` only in its first line: the caller removes them
// from the others.
Json table_of(const ServedKind& kind, const std::vector<const Json*>& objects,
              const Json& list_metadata, std::string_view include_object, Time now);
// Returns the same for one object.
Json table_of(const ServedKind& kind, const Json& object, std::string_view include_object,
              Time now);

// Returns "45s", "2m30s", "3h", "12d": two or three significant digits, in the form of
// k8s.io/apimachinery/pkg/util/duration. It returns "<invalid>" for less than -1 second.
std::string human_duration(std::chrono::seconds duration);
// Returns the time since an RFC 3339 time; "<unknown>" for an empty text, "<invalid>" for any
// other.
std::string human_age(std::string_view time, Time now);

}  // namespace kube::server
