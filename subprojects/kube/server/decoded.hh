// An object from a client is checked and completed before it is stored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/server/request.hh"
#include "kube/server/target.hh"

namespace kube::server {

// Checks that the object is of the target's kind and namespace, and fills in both. A Response is
// the refusal. `is_patched` says that a patch has made the object.
std::optional<Response> settle(const Target& target, Json& object, bool is_patched = false);

// Refuses what the kind cannot hold. The query's fieldValidation decides about fields of `object`
// that the schema does not have: Strict refuses them, Warn (the default) warns of them. They are
// removed in any case.
std::optional<Response> validate_fields(const Target& target, Json& object, bool is_patch,
                                        std::vector<std::string>& warnings);

// Returns "" if a client may use this name for itself, else why not.
std::string manager_problem(std::string_view manager);
// Returns the field manager: the one that the query names, else the first word of the user agent,
// without what manager_problem() refuses.
std::string manager_of(const Query& query, std::string_view user_agent);

}  // namespace kube::server
