// A server describes itself by its version, health, groups and resources, in the aggregated form
// (apidiscovery.k8s.io/v2) and in the older lists; OpenAPI documents are in openapi.hh. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/server/request.hh"
#include "kube/server/served_kind.hh"

namespace kube::server {

struct ServerVersion {
  std::string major = "1";  // the version of Kubernetes whose API is served
  std::string minor = "34";
  std::string git_version = "v1.34.4";  // may have a suffix: "v1.34.4+trainer-0.1.0"
  std::string platform = "linux/amd64";
};

// Answers a GET of /version, /healthz, /livez, /readyz, /api, /apis and the paths below them down
// to a version's resources, /openapi/v3 with its documents, and /openapi/v2, which is empty. The
// result is nullopt for any other path or method, and for a group or version without kinds.
std::optional<Response> answer_discovery(const ServedKinds& kinds, const Request& request,
                                         std::string_view path, const ServerVersion& version);

}  // namespace kube::server
