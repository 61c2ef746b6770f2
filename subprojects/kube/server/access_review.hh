// A server whose only client may do everything answers reviews of the client's own rights. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/server/request.hh"

namespace kube::server {

// Answers a POST of a SelfSubjectAccessReview, SelfSubjectRulesReview (`kubectl auth can-i`) or
// SelfSubjectReview (`kubectl auth whoami`); nullopt for any other path.
std::optional<Response> answer_review(std::string_view path, const Json& body);

}  // namespace kube::server
