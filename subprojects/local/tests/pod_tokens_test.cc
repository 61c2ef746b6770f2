// Tokens of pods: who gets one, and when a TokenReview knows it.
#include "local/server/pod_tokens.hh"

#include <string>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "local/tests/local_api.hh"

using namespace trainer;
using kube::Json;

namespace {

const kube::ObjectKey kAccount{"default", "default"};

struct TokensFixture {
  kube::server::ObjectStore store;
  const PodTokens tokens{kube::Secret<std::string>("secret"), store};
  const kube::Time now = kube::Time::from_seconds(1'800'000'000);

  TokensFixture() {
    store.add_collection(kube::kPods);
    store.put(kube::kPods, test::pod("p"));
  }
  static Json request(const std::string& uid = "1", const std::string& pod = "p") {
    Json bound = Json::object({{"kind", "Pod"}, {"name", pod}, {"uid", uid}});
    Json spec = Json::object({{"audiences", Json::array({"reports"})},
                              {"boundObjectRef", std::move(bound)},
                              {"expirationSeconds", 3'600}});
    return Json::object({{"spec", std::move(spec)}});
  }
  kube::server::Response issue(const Json& request) const {
    return tokens.issue(kAccount, request, now);
  }
  std::string token() const {
    const auto answer = issue(request());
    REQUIRE(answer.status == 201);
    return std::string(kube::parse_json(answer.body)->get("status").get_string("token"));
  }
  std::optional<Json> review(const std::string& token, const std::string& audience = "reports",
                             std::chrono::seconds later = {}) const {
    Json spec = Json::object({{"token", token}});
    if (!audience.empty()) spec.set("audiences", Json::array({audience}));
    return tokens.review(spec, now + later);
  }
  static std::string why(const std::optional<Json>& status) {
    REQUIRE(status);
    CHECK_FALSE(status->get_bool("authenticated"));
    CHECK(status->find("user") == nullptr);
    return std::string(status->get_string("error"));
  }
};

std::string url_of(const std::string& text) {
  std::string encoded = kube::base64_encode(text);
  encoded.erase(std::min(encoded.find('='), encoded.size()));
  return encoded;
}

}  // namespace

TEST_CASE_METHOD(TokensFixture, "a review of a pod's token names the pod") {
  const auto status = review(token());
  REQUIRE(status);
  CHECK(status->get_bool("authenticated"));
  CHECK(status->get("audiences") == Json::array({"reports"}));
  const Json& user = status->get("user");
  CHECK(user.get_string("username") == "system:serviceaccount:default:default");
  const Json& extra = user.get("extra");
  CHECK(extra.get("authentication.kubernetes.io/pod-name") == Json::array({"p"}));
  CHECK(extra.get("authentication.kubernetes.io/pod-uid") == Json::array({"1"}));
}

TEST_CASE_METHOD(TokensFixture, "a token counts for its time, its audience and its pod") {
  const std::string made = token();
  CHECK(review(made, "reports", std::chrono::seconds(3'599))->get_bool("authenticated"));
  CHECK(why(review(made, "reports", std::chrono::seconds(3'600))) == "the token has expired");
  CHECK(why(review(made, "other")) == "the token is for another audience");
  CHECK(why(review(made, "")) == "the token is for another audience");
  store.erase(kube::kPods, {"default", "p"});
  CHECK(why(review(made)) == "the token's pod is gone");
  Json later = test::pod("p");
  later["metadata"].set("uid", "2");
  store.put(kube::kPods, std::move(later));
  CHECK(why(review(made)) == "the token's pod is gone");
}

TEST_CASE_METHOD(TokensFixture, "a token that was not made here is unknown") {
  const std::string made = token();
  const auto first = made.find('.');
  const auto last = made.rfind('.');
  const std::string claims =
      *kube::base64_decode(made.substr(first + 1, last - first - 1) +
                           std::string((4 - (last - first - 1) % 4) % 4, '='));
  REQUIRE_THAT(claims, kube::test::contains("\"exp\":1800003600"));
  std::string longer = claims;
  longer.replace(longer.find("1800003600"), 10, "1900003600");
  const std::string none = url_of(R"({"alg":"none","typ":"JWT"})");
  const PodTokens others(kube::Secret<std::string>("other"), store);
  const auto foreign = kube::parse_json(others.issue(kAccount, request(), now).body);
  for (const std::string& forged :
       {made.substr(0, first + 1) + url_of(longer) + made.substr(last),
        none + "." + url_of(longer) + ".", made.substr(0, made.size() - 1), made + "A",
        std::string(foreign->get("status").get_string("token")), std::string("secret"),
        std::string("."), std::string(), std::string(100'000, 'a') + ".b"}) {
    CAPTURE(forged.substr(0, 300));
    CHECK_FALSE(review(forged));
  }
}

TEST_CASE_METHOD(TokensFixture, "a token is made for a pod that exists, and for an audience") {
  CHECK(issue(request("2")).status == 404);
  CHECK(issue(request("1", "q")).status == 404);
  CHECK(tokens.issue({"other", "default"}, request(), now).status == 404);
  CHECK(tokens.issue({"default", "admin"}, request(), now).status == 422);
  Json changed = request();
  changed["spec"].erase("audiences");
  CHECK(issue(changed).status == 422);
  changed["spec"].set("audiences", Json::array({""}));
  CHECK(issue(changed).status == 422);
  changed["spec"].set("audiences", Json::Array(9, Json("a")));
  CHECK(issue(changed).status == 422);
  changed = request();
  changed["spec"]["boundObjectRef"].set("kind", "Secret");
  CHECK(issue(changed).status == 422);
  CHECK(issue(Json()).status == 422);
}

TEST_CASE_METHOD(TokensFixture, "the time of a token is bounded") {
  const auto end_of = [this](std::int64_t seconds) {
    Json asked = request();
    asked["spec"].set("expirationSeconds", seconds);
    return std::string(
        kube::parse_json(issue(asked).body)->get("status").get_string("expirationTimestamp"));
  };
  const auto after = [this](int seconds) {
    return (now + std::chrono::seconds(seconds)).to_string();
  };
  CHECK(end_of(1) == after(600));
  CHECK(end_of(7'200) == after(7'200));
  CHECK(end_of(std::numeric_limits<std::int64_t>::max()) == after(86'400));
}

TEST_CASE("the path of a request for a token names its ServiceAccount") {
  CHECK(PodTokens::account_of("/api/v1/namespaces/a/serviceaccounts/b/token?x=1") ==
        kube::ObjectKey("a", "b"));
  for (const char* other :
       {"/api/v1/namespaces/a/serviceaccounts/b", "/api/v1/namespaces/a/pods/b/token",
        "/api/v1/namespaces//serviceaccounts/b/token",
        "/api/v1/namespaces/a/serviceaccounts//token",
        "/api/v1/namespaces/a/serviceaccounts/b/c/token",
        "/api/v1/namespaces/a/b/serviceaccounts/c/token"})
    CHECK_FALSE(PodTokens::account_of(other));
}

TEST_CASE_METHOD(test::LocalApi, "the API makes tokens of pods, and accepts none itself") {
  store.put(kube::kPods, test::pod("p"));
  start();
  const auto answer =
      kube::run_task(io, client->post("/api/v1/namespaces/default/serviceaccounts/default/token",
                                      TokensFixture::request()));
  REQUIRE(answer);
  const std::string token(answer->get("status").get_string("token"));
  Json spec = Json::object({{"token", token}, {"audiences", Json::array({"reports"})}});
  const auto review = kube::run_task(io, client->post("/apis/authentication.k8s.io/v1/tokenreviews",
                                                      Json::object({{"spec", std::move(spec)}})));
  REQUIRE(review);
  CHECK(review->get("status").get_bool("authenticated"));
  use_http(token);
  CHECK(send(kube::HttpRequest("GET", "/version"))->status == 401);
}
