// OpenAPI v3 documents, as kubectl reads them: to know that the server checks fields (`apply`,
// `create`, `edit`), how it patches, and what `explain` prints. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

// The documents, one for each group and version, each with a hash of its text in its address.
Json openapi_index(const ServedKinds& kinds);
// The document of "api/v1" or "apis/GROUP/VERSION"; nullopt where no kind has it. Strategic merge
// patches are taken, but not named: so kubectl uses its own types for them, since the schemas do
// not have the keys of lists.
std::optional<Json> openapi_document(const ServedKinds& kinds, std::string_view group_version);

}  // namespace kube::server
