// kubectl reads these OpenAPI v3 documents: to know that the server checks fields (`apply`,
// `create`, `edit`), how it patches, and what `explain` prints. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// Returns the documents, one for each group and version, each with a hash of its text in its
// address.
Json openapi_index(const ServedKinds& kinds);
// Returns the document of "api/v1" or "apis/GROUP/VERSION"; nullopt if no kind has it. Strategic
// merge patches are accepted, but not named: so kubectl uses its own types for them, since the
// schemas do not have the keys of lists.
std::optional<Json> openapi_document(const ServedKinds& kinds, std::string_view group_version);

}  // namespace kube::server
