// Local mode's API over HTTP: the token, a watch over TLS, warnings, reviews, the audit log.
#include <fstream>
#include <sstream>

#include "local/server/audit.hh"
#include "local/tests/local_api.hh"

using namespace trainer;
using kube::Json;
using kube::Task;

namespace {

constexpr const char* kConfigMapsPath = "/api/v1/namespaces/default/configmaps";

std::vector<Json> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(*kube::parse_json(line));
  return lines;
}

Task<kube::Result<void>> follow(std::atomic<bool>& has_ended, std::shared_ptr<kube::Notifier> never,
                                kube::WriteBody write) {
  struct End {
    std::atomic<bool>& flag;
    explicit End(std::atomic<bool>& of) : flag(of) {}
    ~End() { flag = true; }
  };
  const End end(has_ended);
  co_await write("");
  for (;;) co_await never->wait();
}

Task<kube::Result<void>> answered(kube::Result<void> outcome) {
  co_return outcome;
}

Task<ApiServer::Admitted> warn_and_refuse_bad(kube::server::PendingWrite write, Caller) {
  write.warnings = {"say \"why\""};
  if (write.key.name != "bad") co_return write;
  co_return tl::unexpected(kube::server::failure(403, "Forbidden", "no"));
}

}  // namespace

TEST_CASE_METHOD(test::LocalApi, "over HTTP only the holder of the token is served") {
  start();
  use_http("wrong");
  CHECK(send(kube::HttpRequest("GET", kConfigMapsPath))->status == 401);
  CHECK(send(kube::HttpRequest("GET", "/healthz"))->status != 401);
  use_http("");
  CHECK(send(kube::HttpRequest("GET", "/version"))->status == 401);
  use_http("secret");
  CHECK(send(kube::HttpRequest("GET", kConfigMapsPath))->status == 200);
}

TEST_CASE_METHOD(test::LocalApi, "a watch over TLS gets each change as it comes") {
  start();
  use_http("secret");
  REQUIRE(create(test::config_map("a")));
  auto stream = kube::run_task(io, client->stream(std::string(kConfigMapsPath) + "?watch=true"));
  REQUIRE(stream);
  CHECK_THAT(kube::run_task(io, test::read_until(**stream, test::has_lines(1))),
             Catch::Contains("\"ADDED\""));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(create(test::config_map("b" + std::to_string(i))));
    CHECK_THAT(kube::run_task(io, test::read_until(**stream, test::has_lines(1))),
               Catch::Contains("\"b" + std::to_string(i) + "\""));
  }
}

TEST_CASE_METHOD(test::LocalApi, "hundreds of open streams keep no command waiting") {
  start();
  use_http("secret");
  const std::string path = std::string(kConfigMapsPath) + "?watch=true";
  std::vector<std::unique_ptr<kube::HttpStream>> streams;
  for (int i = 0; i < 300; ++i) {
    auto stream = kube::run_task(io, client->stream(path));
    REQUIRE(stream);
    streams.push_back(std::move(*stream));
  }
  CHECK(send(kube::HttpRequest("GET", kConfigMapsPath))->status == 200);
}

TEST_CASE_METHOD(test::LocalApi,
                 "a watch ends in order when its time is over, or the server ends") {
  start();
  use_http("secret");
  const bool is_timed = GENERATE(true, false);
  const std::string path =
      std::string(kConfigMapsPath) + "?watch=true" + (is_timed ? "&timeoutSeconds=1" : "");
  auto stream = kube::run_task(io, client->stream(path));
  REQUIRE(stream);
  if (!is_timed) kube::asio::post(server_io, [this] { server->stop(); });
  const auto piece = kube::run_task(io, (*stream)->read_some(kube::Milliseconds(5'000)));
  CHECK((!piece || piece->empty()));
  if (is_timed) CHECK(piece.has_value());
}

TEST_CASE_METHOD(test::LocalApi, "a client that leaves ends the log that it followed") {
  std::atomic<bool> has_ended = false;
  const auto never = std::make_shared<kube::Notifier>(server_io.get_executor());
  kube::Result<void> outcome;
  hooks.read_logs = [&](kube::server::LogQuery query, kube::WriteBody write) {
    return query.is_followed ? follow(has_ended, never, std::move(write)) : answered(outcome);
  };
  store.put(kube::kPods, test::pod("p"));
  start();
  use_http("secret");
  const std::string path = "/api/v1/namespaces/default/pods/p/log";
  SECTION("followed") {
    auto stream = kube::run_task(io, client->stream(path + "?follow=true"));
    REQUIRE(stream);
    CHECK_FALSE(has_ended);
    stream->reset();
    CHECK(kube::run_until(io, [&] { return has_ended.load(); }));
  }
  SECTION("without a log yet") {
    outcome = kube::fail(kube::ErrorCode::kBadRequest, "container \"c\" is waiting to start");
    const auto answer = send(kube::HttpRequest("GET", path));
    REQUIRE(answer);
    CHECK(answer->status == 400);
    CHECK_THAT(answer->body, Catch::Contains("waiting to start"));
  }
  SECTION("an empty one") {
    const auto answer = send(kube::HttpRequest("GET", path));
    REQUIRE(answer);
    CHECK(answer->status == 200);
    CHECK(answer->body.empty());
  }
}

TEST_CASE_METHOD(test::LocalApi, "warnings are headers, and a refusal of admission is an answer") {
  hooks.admit = warn_and_refuse_bad;
  start();
  use_http("secret");
  kube::HttpRequest request("POST", kConfigMapsPath);
  request.content_type = "application/json";
  request.body = kube::print_json(test::config_map("good"));
  const auto made = send(request);
  REQUIRE(made);
  CHECK(made->status == 201);
  CHECK(made->header("warning") == "299 - \"say \\\"why\\\"\"");
  request.body = kube::print_json(test::config_map("bad"));
  CHECK(send(request)->status == 403);
}

TEST_CASE_METHOD(test::LocalApi, "a TokenReview knows the one token") {
  start();
  const auto review = [this](const char* token) {
    Json body = Json::object({{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}});
    body.set("spec", Json::object({{"token", token}}));
    return *kube::run_task(
        io, client->post("/apis/authentication.k8s.io/v1/tokenreviews", std::move(body)));
  };
  CHECK(review("secret").get("status").get_bool("authenticated"));
  CHECK(review("secret").get_path({"status", "user"}).get_string("username") == "local");
  CHECK_FALSE(review("other").get("status").get_bool("authenticated"));
}

TEST_CASE_METHOD(test::LocalApi, "each request is a line of the audit log") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "audit.log";
  audit = std::move(*Audit::open(file.string()));
  start();
  REQUIRE(create(test::config_map("a")));
  use_http("secret");
  REQUIRE(create(test::config_map("b")));
  CHECK_FALSE(create(test::config_map("b")));
  end();
  const auto lines = lines_of(file);
  REQUIRE(lines.size() == 3);
  const auto summary = [](const Json& line) {
    return std::string(line.get_string("verb")) + " " +
           std::string(line.get("objectRef").get_string("name")) + " " +
           std::string(line.get("user").get_string("username")) + " " +
           std::to_string(line.get("responseStatus").get_int("code"));
  };
  CHECK(summary(lines[0]) ==
        "create a system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager 201");
  CHECK(summary(lines[1]) == "create b local 201");
  CHECK(summary(lines[2]) == "create b local 409");
  for (const std::string refused : {"/none/audit.log", "/proc/audit.log", "/proc"}) {
    const auto opened = Audit::open(refused);
    REQUIRE_FALSE(opened);
    CHECK_THAT(opened.error().message,
               Catch::StartsWith("--audit: ") && Catch::EndsWith("or name another file"));
  }
}

TEST_CASE("the audit log names verb and object as kube-apiserver does") {
  struct Case {
    std::string request;
    std::string expected;  // verb, group, version, namespace, resource, name, subresource
  };
  const Case each = GENERATE(values<Case>({
      {"GET /api/v1/pods", "list  v1  pods  "},
      {"GET /api/v1/namespaces/x/pods?limit=5&watch=true", "watch  v1 x pods  "},
      {"GET /api/v1/namespaces/x/pods?watch=false", "list  v1 x pods  "},
      {"GET /api/v1/namespaces/x/pods/p/log?follow=true", "get  v1 x pods p log"},
      {"GET /api/v1/namespaces/x", "get  v1  namespaces x "},
      {"PUT /api/v1/namespaces/x/finalize", "update  v1  namespaces x finalize"},
      {"PATCH /apis/batch/v1/namespaces/x/jobs/j/status", "patch batch v1 x jobs j status"},
      {"DELETE /apis/batch/v1/namespaces/x/jobs/j", "delete batch v1 x jobs j "},
      {"DELETE /apis/batch/v1/namespaces/x/jobs", "deletecollection batch v1 x jobs  "},
      {"GET /version", "get      "},
  }));
  CAPTURE(each.request);
  AuditRecord record;
  const auto space = each.request.find(' ');
  record.method = each.request.substr(0, space);
  record.target = each.request.substr(space + 1);
  const auto line = kube::parse_json(audit_line(record, "1"));
  REQUIRE(line);
  const Json& ref = line->get("objectRef");
  std::ostringstream found;
  found << line->get_string("verb");
  for (const char* member :
       {"apiGroup", "apiVersion", "namespace", "resource", "name", "subresource"})
    found << ' ' << ref.get_string(member);
  CHECK(found.str() == each.expected);
}
