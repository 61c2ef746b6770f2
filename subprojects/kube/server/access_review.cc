#include "kube/server/access_review.hh"

#include <string>

namespace kube::server {
namespace {

Json all_rights() {
  const Json all = Json::array({"*"});
  const Json resources = Json::object({{"verbs", all}, {"apiGroups", all}, {"resources", all}});
  const Json paths = Json::object({{"verbs", all}, {"nonResourceURLs", all}});
  return Json::object({{"resourceRules", Json::array({resources})},
                       {"nonResourceRules", Json::array({paths})},
                       {"incomplete", false}});
}

// Returns the only user, who has the same name in a TokenReview.
Json user() {
  const Json groups = Json::array({"system:masters", "system:authenticated"});
  return Json::object({{"userInfo", Json::object({{"username", "local"}, {"groups", groups}})}});
}

struct Review {
  std::string_view group, plural, kind;
  Json (*make_status)();
};
constexpr Review kReviews[] = {
    {"authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
     [] {
       return Json::object({{"allowed", true}});
     }},
    {"authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", all_rights},
    {"authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", user}};

}  // namespace

std::optional<Response> answer_review(std::string_view path, const Json& body) {
  for (const Review& review : kReviews) {
    const std::string api_version = std::string(review.group) + "/v1";
    if (path != "/apis/" + api_version + "/" + std::string(review.plural)) continue;
    Json answer = body.is_object() ? body : Json::object();
    answer.set("apiVersion", api_version).set("kind", review.kind);
    if (!answer.get("metadata").is_object()) answer.set("metadata", Json::object());
    answer.set("status", review.make_status());
    return json_response(201, answer);
  }
  return std::nullopt;
}

}  // namespace kube::server
