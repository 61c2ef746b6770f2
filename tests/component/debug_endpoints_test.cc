// These tests check which requests the running process answers, and for whom.
#include "controller/process/endpoints.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/captured_errors.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

const std::string kTokens = "/apis/authentication.k8s.io/v1/tokenreviews";
const std::string kAccess = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const char* const kUser = R"({"status":{"authenticated":true,"user":{"username":"sre"}}})";

struct DebugEndpointsFixture : test::IdleManager {
  kube::Log changing{kube::LogLevel::kInfo, kube::Log::Format::kText};
  std::unique_ptr<kube::HttpServer> server;

  void serve(const char* host, bool is_checked) {
    DebugOptions debug{&changing, [this] { return manager.state(); }};
    auto access = is_checked ? std::make_shared<MetricsAccess>(client) : nullptr;
    auto served = serve_metrics(io, {host, 0}, kube::ServerOptions(), metrics, std::move(access),
                                std::move(debug));
    REQUIRE(served);
    server = std::move(*served);
  }
  kube::HttpResponse ask(const char* method, const char* path, std::string body = "",
                         const std::string& token = "") {
    kube::ClientConfig config;
    config.server = "http://127.0.0.1:" + std::to_string(server->port());
    config.token = kube::Secret<std::string>(token);
    const auto to_server = kube::make_transport(io, config, kube::TransportLimits());
    kube::HttpRequest request(method, path);
    request.body = std::move(body);
    auto got = kube::run_task(io, to_server->send(std::move(request)));
    REQUIRE(got);
    return *got;
  }
};

}  // namespace

TEST_CASE_METHOD(DebugEndpointsFixture, "without the check of tokens only this machine may ask") {
  serve("0.0.0.0", false);
  for (const char* path : {"/debug/state", "/debug/loglevel"}) {
    const auto refused = ask("GET", path);
    CHECK(refused.status == 401);
    CHECK_THAT(refused.body, Catch::Contains("metrics.auth.enabled"));
  }
  CHECK(ask("PUT", "/debug/loglevel", "debug").status == 401);
  CHECK(changing.level() == kube::LogLevel::kInfo);
  CHECK(ask("GET", "/metrics").status == 200);
  serve("127.0.0.1", false);
  CHECK(ask("GET", "/debug/state").status == 200);
}

TEST_CASE_METHOD(DebugEndpointsFixture, "each path and verb is a right of its own") {
  serve("0.0.0.0", true);
  CHECK(ask("GET", "/debug/state").status == 401);
  api.on("POST", kTokens).answer(201, kUser).always();
  api.on("POST", kAccess).answer(201, R"({"status":{"allowed":true}})");
  CHECK(ask("GET", "/metrics", "", "t").status == 200);
  api.on("POST", kAccess).answer(201, R"({"status":{"allowed":false}})");
  const auto refused = ask("PUT", "/debug/loglevel", "debug", "t");
  CHECK(refused.status == 403);
  CHECK_THAT(refused.body, Catch::Contains("nonResourceURLs [/debug/loglevel] and verbs [put]"));
  const auto asked = *kube::parse_json(api.log().back().body);
  CHECK(*asked.find_path({"spec", "nonResourceAttributes"}) ==
        *kube::parse_json(R"({"path":"/debug/loglevel","verb":"put"})"));
  CHECK(changing.level() == kube::LogLevel::kInfo);
  api.on("POST", kAccess).answer(201, R"({"status":{"allowed":true}})");
  CHECK(ask("GET", "/debug/state", "", "t").status == 200);
}

TEST_CASE_METHOD(DebugEndpointsFixture, "the log level changes at once, and the log says so") {
  serve("127.0.0.1", false);
  CHECK(ask("GET", "/debug/loglevel").body == "info\n");
  const test::CapturedErrors captured;
  CHECK(ask("PUT", "/debug/loglevel", "debug\n").status == 200);
  CHECK(changing.is_debug());
  changing.debug("now it is seen");
  CHECK_THAT(captured.text(),
             Catch::Contains("log level from=info to=debug") && Catch::Contains("now it is seen"));
  CHECK(ask("PUT", "/debug/loglevel", "loud").status == 400);
  CHECK(ask("POST", "/debug/loglevel", "warn").status == 405);
  CHECK(ask("PUT", "/debug/state", "warn").status == 405);
  CHECK(ask("GET", "/debug").status == 404);
  CHECK(changing.is_debug());
}

TEST_CASE_METHOD(DebugEndpointsFixture, "the dump has queues, caches, watches and the leadership") {
  serve("127.0.0.1", false);
  trainjobs().update_if_newer(
      R"({"metadata":{"name":"j","namespace":"ns","uid":"u","resourceVersion":"1"}})");
  const auto state = kube::parse_json(ask("GET", "/debug/state").body);
  REQUIRE(state);
  CHECK_FALSE(state->get_bool("isLeading", true));
  for (const char* controller : {"trainjob_controller", "jobset", "pod"}) {
    const kube::Json* queue = state->find_path({"controllers", controller});
    REQUIRE(queue);
    CHECK(queue->get_int("ready", -1) == 0);
    CHECK(queue->get("waits").is_array());
  }
  const auto& caches = state->get_array("caches");
  const auto at = std::find_if(caches.begin(), caches.end(), [](const kube::Json& each) {
    return each.get_string("resource") == "trainjobs.trainer.kubeflow.org";
  });
  REQUIRE(at != caches.end());
  CHECK(at->get_int("objects") == 1);
  CHECK_FALSE(at->get_bool("isSynced", true));
}

TEST_CASE("levels have names") {
  for (const auto level : {kube::LogLevel::kError, kube::LogLevel::kWarn, kube::LogLevel::kInfo,
                           kube::LogLevel::kDebug})
    CHECK(kube::parse_log_level(kube::name_of(level)) == level);
  CHECK_FALSE(kube::parse_log_level("Debug"));
}
