// These tests check who may read the metrics, and what the checks cost.
#include "controller/process/metrics_access.hh"

#include "controller/process/endpoints.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::ErrorCode;

namespace {

const std::string kMetricsTokens = "/apis/authentication.k8s.io/v1/tokenreviews";
const std::string kMetricsAccess = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const char* const kMetricsUser =
    R"({"status":{"authenticated":true,"user":{"username":"prometheus","groups":["monitoring"]}}})";

const NonResourceAccess kMetrics{"get", "/metrics"};

struct MetricsAccessFixture : kube::test::ScriptedPeer {
  MetricsAccess access{client};

  ErrorCode refusal(const std::string& token) {
    const auto checked =
        kube::run_task(io, access.check(kube::Secret<std::string>(token), kMetrics));
    REQUIRE_FALSE(checked);
    return checked.error().code;
  }
  bool is_allowed(const std::string& token) {
    return kube::run_task(io, access.check(kube::Secret<std::string>(token), kMetrics)).has_value();
  }
};

}  // namespace

TEST_CASE_METHOD(MetricsAccessFixture,
                 "a token whose user may get /metrics is allowed, and cached for a minute") {
  api.on("POST", kMetricsTokens).answer(201, kMetricsUser).always();
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":true}})").always();
  CHECK(is_allowed("t"));
  CHECK(is_allowed("t"));
  REQUIRE(api.log().size() == 2);
  const auto asked = *kube::parse_json(api.log()[1].body);
  CHECK(*asked.find("spec") == *kube::parse_json(R"({"user":"prometheus","groups":["monitoring"],
      "nonResourceAttributes":{"path":"/metrics","verb":"get"}})"));
  CHECK(is_allowed("other"));
  CHECK(api.log().size() == 4);
  clock.advance(std::chrono::seconds(61));
  CHECK(is_allowed("t"));
  CHECK(api.log().size() == 6);
}

TEST_CASE_METHOD(MetricsAccessFixture,
                 "a token without the right, or that is not valid, is refused for a while") {
  CHECK(refusal("") == ErrorCode::kUnauthorized);
  CHECK(api.log().empty());
  api.on("POST", kMetricsTokens).answer(201, R"({"status":{"authenticated":false}})");
  CHECK(refusal("wrong") == ErrorCode::kUnauthorized);
  CHECK(refusal("wrong") == ErrorCode::kUnauthorized);
  CHECK(api.log().size() == 1);
  api.on("POST", kMetricsTokens).answer(201, kMetricsUser);
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":false}})");
  CHECK(refusal("weak") == ErrorCode::kForbidden);
  clock.advance(std::chrono::seconds(11));
  api.on("POST", kMetricsTokens).answer(201, kMetricsUser);
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":true}})");
  CHECK(is_allowed("weak"));
}

TEST_CASE_METHOD(MetricsAccessFixture,
                 "a flood of tokens that are refused does not push out one that is allowed") {
  api.on("POST", kMetricsTokens).answer(201, kMetricsUser);
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":true}})");
  CHECK(is_allowed("t"));
  api.on("POST", kMetricsTokens).answer(201, R"({"status":{"authenticated":false}})").always();
  for (int i = 0; i < 1'000; ++i)
    REQUIRE(refusal("wrong" + std::to_string(i)) == ErrorCode::kUnauthorized);
  const auto before = api.log().size();
  CHECK(is_allowed("t"));
  CHECK(api.log().size() == before);
}

TEST_CASE_METHOD(MetricsAccessFixture, "a check that failed is not remembered") {
  api.on("POST", kMetricsTokens).answer(403, "{}");
  const auto failed = kube::run_task(io, access.check(kube::Secret<std::string>("t"), kMetrics));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().status == 403);
  api.on("POST", kMetricsTokens).answer(201, kMetricsUser);
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":true}})");
  CHECK(is_allowed("t"));
}

TEST_CASE_METHOD(MetricsAccessFixture, "the server answers 401, 403 and 500") {
  Metrics metrics;
  const auto server = serve_metrics(io, {"127.0.0.1", 0}, kube::ServerOptions(), metrics,
                                    std::make_shared<MetricsAccess>(client));
  REQUIRE(server);
  kube::ClientConfig config;
  config.server = "http://127.0.0.1:" + std::to_string((*server)->port());
  const auto status_of = [&](const std::string& token) {
    config.token = kube::Secret<std::string>(token);
    const auto to_server = kube::make_transport(io, config, kube::TransportLimits());
    const auto got = kube::run_task(io, to_server->send(kube::HttpRequest("GET", "/metrics")));
    REQUIRE(got);
    return got->status;
  };
  CHECK(status_of("") == 401);
  api.on("POST", kMetricsTokens).answer(201, kMetricsUser).times(2);
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":false}})");
  CHECK(status_of("weak") == 403);
  api.on("POST", kMetricsAccess).answer(201, R"({"status":{"allowed":true}})");
  CHECK(status_of("good") == 200);
  api.on("POST", kMetricsTokens).answer(403, "{}");
  CHECK(status_of("unlucky") == 500);
}
