// A DELETE changes an object by these rules (k8s.io/apiserver/pkg/registry/rest/delete.go and
// registry/generic/registry/store.go). Pure.
#pragma once

#include <functional>
#include <string_view>
#include <tl/expected.hpp>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/request.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

struct Deletion {
  bool is_immediate = false;  // the object is removed now; else it is stored as `object`
  Json object;
};

// `options` is a DeleteOptions. Errors: 409 for a precondition that does not hold, 422 for invalid
// options, 403 for a namespace that must stay.
tl::expected<Deletion, Response> plan_deletion(const ServedKind& kind, const Json& stored,
                                               const Json& options, Time now);

// Returns whether the object is removed when it is stored like this: it has a deletionTimestamp, no
// finalizers and no grace period left. This is never so for a Namespace, which the Collector
// removes.
bool is_removable(const ServedKind& kind, const Json& object);

// Returns whether the dependents are orphaned because `options` say nothing about them: that is so
// for Jobs alone, whose pods stay.
bool has_default_orphans(const ServedKind& kind, const Json& options);

// Removes items of a list, and a list that is empty then.
void erase_items(Json& object, std::string_view list,
                 const std::function<bool(const Json& item)>& is_erased);

bool has_finalizer(const Json& object, std::string_view name);
inline constexpr std::string_view kForeground = "foregroundDeletion";
inline constexpr std::string_view kOrphan = "orphan";

}  // namespace kube::server
