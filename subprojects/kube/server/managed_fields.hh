// Server-side apply and metadata.managedFields say who set which field, and what an apply changes
// (sigs.k8s.io/structured-merge-diff with k8s.io/apimachinery/pkg/util/managedfields).
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "kube/server/request.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// An object is written for this client.
struct Writer {
  std::string manager;      // the field manager; empty: "unknown"
  std::string subresource;  // "", "status" or "scale"
  Time now;
};

// Writes metadata.managedFields of `object` after any write except an apply. `before` is the stored
// object, nullptr for a create. Entries in `object` count instead of the stored ones; an empty list
// resets them.
void track_update(const ServedKind& kind, const Json* before, Json& object, const Writer& by);

// Does a server-side apply. `config` is the applied configuration: the fields that the client wants
// to own. The result is `before` with these fields, and without those that only this manager had
// applied before and that `config` no longer has. It is equal to `before` if nothing changes,
// including the entries of managedFields. Errors: 409 with a cause for each field of another
// manager, 400 for a config that cannot be applied, 422 for a null in a custom resource (a list
// that another manager has, and which this one empties, becomes null), 500 for a field that the
// schema does not have.
tl::expected<Json, Response> apply_config(const ServedKind& kind, const Json* before,
                                          const Json& config, const Writer& by, bool is_forced);

// Returns whether two objects are equal except for the times of managedFields.
bool is_equal_but_for_times(const Json& a, const Json& b);

}  // namespace kube::server
