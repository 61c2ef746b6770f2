#include "kube/client/api_client.hh"
#include "kube/client/task_group.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"

using namespace kube;

namespace {

const char* const kPath = "/apis/batch/v1/namespaces/x/jobs/y";
const char* const kAll = "/apis/batch/v1/namespaces/x/jobs";

std::string status_text(int code, const std::string& reason, const std::string& message) {
  return print_json(
      Json::object({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}));
}

struct Fixture {
  asio::io_context io;
  FakeClock clock;
  FakeRandom random;  // jitter factor 1: 100 ms, 200 ms, 400 ms
  ScriptedServer server{io};
  std::unique_ptr<Transport> transport = make_transport(io, server.config(), TransportLimits());
  std::vector<std::string> records;
  ApiClient client{*transport, clock, random, options()};
  ObjectKey key{"x", "y"};

  ApiClient::Options options() {
    ApiClient::Options options;
    options.on_request = [this](const RequestRecord& record) {
      records.push_back(std::string(record.method) + " " + std::string(record.resource) + " " +
                        std::to_string(record.status));
    };
    return options;
  }

  // The task's result; pauses are skipped, and `paused` says how long they were together.
  Milliseconds paused{0};
  template <class T>
  T finish(Task<T> task) {
    std::optional<T> result;
    TaskGroup group(io.get_executor(), nullptr);
    group.spawn("task", keep(std::move(task), result));
    while (!result) {
      if (!run_until(io, [&] { return result.has_value() || clock.timers() > 0; })) break;
      if (result) break;
      const auto next = std::chrono::duration_cast<Milliseconds>(clock.until_next());
      paused += next;
      clock.advance(next);
    }
    REQUIRE(result.has_value());
    settle(io);
    return std::move(*result);
  }
  template <class T>
  static Task<void> keep(Task<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }
  template <class T>
  static ErrorCode code_of(const Result<T>& result) {
    REQUIRE_FALSE(result);
    return result.error().code;
  }
};

Json job() {
  return Json::object({{"metadata", Json::object({{"namespace", "x"}, {"name", "y"}})}});
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("paths of resources") {
  const Resource pods{"", "v1", "pods", "Pod", true};
  const Resource nodes{"", "v1", "nodes", "Node", false};
  const std::pair<std::string, std::string> rows[] = {
      {api_path(kJobs, {"x", "y"}), "/apis/batch/v1/namespaces/x/jobs/y"},
      {api_path(kJobs, {"x", "y"}, "status"), "/apis/batch/v1/namespaces/x/jobs/y/status"},
      {api_path(kJobs, {"x", ""}), "/apis/batch/v1/namespaces/x/jobs"},
      {api_path(kJobs, {"", ""}), "/apis/batch/v1/jobs"},
      {api_path(pods, {"x", "y"}, "log"), "/api/v1/namespaces/x/pods/y/log"},
      {api_path(nodes, {"", "n"}), "/api/v1/nodes/n"},
      {api_path(nodes, {"ignored", "n"}), "/api/v1/nodes/n"},
      {api_path(pods, {"x", "../../a b?c"}), "/api/v1/namespaces/x/pods/..%2F..%2Fa%20b%3Fc"},
  };
  for (const auto& [got, expected] : rows) CHECK(got == expected);
}

TEST_CASE("the errors that Status answers mean") {
  struct Row {
    int status;
    const char* reason;
    ErrorCode expected;
  };
  const Row rows[] = {
      {400, "BadRequest", ErrorCode::kBadRequest},
      {401, "Unauthorized", ErrorCode::kUnauthorized},
      {403, "Forbidden", ErrorCode::kForbidden},
      {404, "NotFound", ErrorCode::kNotFound},
      {405, "MethodNotAllowed", ErrorCode::kUnsupported},
      {409, "AlreadyExists", ErrorCode::kAlreadyExists},
      {409, "Conflict", ErrorCode::kConflict},
      {410, "Expired", ErrorCode::kGone},
      {413, "RequestEntityTooLarge", ErrorCode::kTooLarge},
      {415, "UnsupportedMediaType", ErrorCode::kUnsupported},
      {418, "Unknown", ErrorCode::kBadRequest},
      {422, "Invalid", ErrorCode::kInvalid},
      {429, "TooManyRequests", ErrorCode::kTooManyRequests},
      {500, "InternalError", ErrorCode::kServerError},
      {503, "ServiceUnavailable", ErrorCode::kServerError},
      {504, "Timeout", ErrorCode::kTimeout},
  };
  for (const Row& row : rows) {
    INFO(row.status << " " << row.reason);
    HttpResponse response;
    response.status = row.status;
    response.body = status_text(row.status, row.reason, "so it is");
    const Error error = error_of(response);
    CHECK(error.code == row.expected);
    CHECK(error.status == row.status);
    CHECK(error.message == "so it is");
    CHECK_FALSE(error.retry_after);
  }
  HttpResponse quoting;  // the API server quotes the whole value, too
  quoting.status = 422;
  quoting.body = status_text(422, "Invalid", std::string(1U << 20, 'x'));
  CHECK(error_of(quoting).message.size() == 4'096);
  HttpResponse bare;
  bare.status = 429;
  bare.body = "Too many requests, please try again later.";
  bare.add_header("retry-after", "3");
  CHECK(error_of(bare).retry_after == Milliseconds(3'000));
  CHECK_THAT(error_of(bare).message, Catch::Contains("429") && Catch::Contains("try again later"));
}

TEST_CASE("a server may ask for a pause of a day, not of ages") {
  const auto asked = [](const std::string& seconds) {
    HttpResponse response;
    response.status = 429;
    response.body = R"({"kind":"Status","details":{"retryAfterSeconds":)" + seconds + "}}";
    return error_of(response).retry_after;
  };
  CHECK(asked("2") == Milliseconds(2'000));
  CHECK(asked("86401") == Milliseconds(86'400'000));
  CHECK(asked("9223372036854775807") == Milliseconds(86'400'000));
  CHECK_FALSE(asked("0"));
  CHECK_FALSE(asked("-9223372036854775808"));
  HttpResponse bare;
  bare.status = 429;
  bare.add_header("retry-after", "999999");
  CHECK(error_of(bare).retry_after == Milliseconds(86'400'000));
}

TEST_CASE_METHOD(Fixture, "each verb sends what the API expects") {
  const std::string answer = R"({"metadata":{"name":"y"}})";
  for (const char* const method : {"GET", "PATCH", "DELETE"}) {
    server.on(method, kPath).answer(200, answer).always();
  }
  server.on("PATCH", std::string(kPath) + "/status").answer(200, answer);
  server.on("POST", kAll).answer(201, answer);
  DeleteOptions options;
  options.propagation = "Foreground";
  options.uid = "u-1";
  options.grace_seconds = 0;
  CHECK(finish(client.get(kJobs, key)));
  CHECK(finish(client.create(kJobs, job())));
  CHECK(finish(client.apply(kJobs, key, job(), "a b", true)));
  CHECK(finish(client.merge_patch(kJobs, key, job(), "status")));
  CHECK(finish(client.json_patch(kJobs, key, Json::array({}))));
  CHECK(finish(client.remove(kJobs, key, options)));
  CHECK(server.lines() == Lines{std::string("GET ") + kPath,
                                std::string("POST ") + kAll + "?fieldManager=trainer",
                                std::string("PATCH ") + kPath + "?fieldManager=a%20b&force=true",
                                std::string("PATCH ") + kPath + "/status",
                                std::string("PATCH ") + kPath, std::string("DELETE ") + kPath});
  const auto& log = server.log();
  CHECK(log[2].headers.at("content-type") == "application/apply-patch+yaml");
  CHECK(log[3].headers.at("content-type") == "application/merge-patch+json");
  CHECK(log[4].headers.at("content-type") == "application/json-patch+json");
  CHECK(log[5].body == R"({"apiVersion":"v1","gracePeriodSeconds":0,"kind":"DeleteOptions",)"
                       R"("preconditions":{"uid":"u-1"},)"
                       R"("propagationPolicy":"Foreground"})");
  CHECK(records[0] == "GET jobs 200");
  CHECK(records[1] == "POST jobs 201");
}

TEST_CASE_METHOD(Fixture, "a person's client is strict, and hears warnings of writes") {
  server.on("GET", kPath).answer(200, "{}").header("Warning", "299 - \"of a read\"");
  server.on("PATCH", kPath).answer(200, "{}").header("Warning", R"(299 - "say \"why\" and \\")");
  server.on("POST", kAll).answer(201, "{}").header("Warning", "299 without a text");
  Lines warnings;
  ApiClient::Options strict;
  strict.is_strict = true;
  strict.on_warning = [&](std::string_view text) { warnings.emplace_back(text); };
  ApiClient person(*transport, clock, random, strict);
  CHECK(finish(person.get(kJobs, key)));
  CHECK(finish(person.create(kJobs, job())));
  CHECK(finish(person.apply(kJobs, key, job(), "m", true)));
  CHECK(warnings == Lines{R"(say "why" and \)"});
  CHECK(server.lines() ==
        Lines{std::string("GET ") + kPath,
              std::string("POST ") + kAll + "?fieldManager=trainer&fieldValidation=Strict",
              std::string("PATCH ") + kPath + "?fieldManager=m&fieldValidation=Strict&force=true"});
}

TEST_CASE_METHOD(Fixture, "429 is obeyed, for creates too") {
  server.on("POST", kAll).answer(429, "later").header("Retry-After", "2").times(2);
  server.on("POST", kAll).answer(201, "{}");
  CHECK(finish(client.create(kJobs, job())));
  CHECK(paused == Milliseconds(4'000));
  CHECK(records == Lines{"POST jobs 429", "POST jobs 429", "POST jobs 201"});
}

TEST_CASE_METHOD(Fixture, "a server in trouble is asked again, but not to create") {
  server.on("GET", kPath).answer(503, "").times(2);
  server.on("GET", kPath).answer(200, "{}");
  CHECK(finish(client.get(kJobs, key)));
  CHECK(paused == Milliseconds(100 + 200));

  server.on("POST", kAll).answer(500, "").always();
  CHECK(code_of(finish(client.create(kJobs, job()))) == ErrorCode::kServerError);
  server.on("PATCH", kPath).answer(500, "").always();
  CHECK(code_of(finish(client.json_patch(kJobs, key, Json::array({})))) == ErrorCode::kServerError);
  CHECK(server.log().size() == 3 + 1 + 1);
}

TEST_CASE_METHOD(Fixture, "nothing but reads is sent while this process may not write") {
  bool may_write = true;
  ApiClient::Options fenced = options();
  fenced.may_write = [&may_write] { return may_write; };
  ApiClient writer(*transport, clock, random, fenced);
  // Before a second attempt, too.
  server.on("POST", kAll).reply([&may_write](const ReceivedRequest&) {
    may_write = false;
    return ScriptedReply(429, "later");
  });
  CHECK(code_of(finish(writer.create(kJobs, job()))) == ErrorCode::kCancelled);
  CHECK(server.log().size() == 1);
  CHECK(code_of(finish(writer.merge_patch(kJobs, key, job(), "status"))) == ErrorCode::kCancelled);
  CHECK(code_of(finish(writer.remove(kJobs, key, DeleteOptions()))) == ErrorCode::kCancelled);
  CHECK(server.log().size() == 1);
  server.on("GET", kPath).answer(200, "{}");
  CHECK(finish(writer.get(kJobs, key)));
  may_write = true;
  server.on("POST", kAll).answer(201, "{}");
  CHECK(finish(writer.create(kJobs, job())));
}

TEST_CASE_METHOD(Fixture, "the number of attempts is bounded") {
  server.on("GET", kPath).answer(500, status_text(500, "InternalError", "broken")).always();
  const auto got = finish(client.get(kJobs, key));
  CHECK(code_of(got) == ErrorCode::kServerError);
  CHECK(got.error().message == "broken");
  CHECK(server.log().size() == 4);
}

TEST_CASE_METHOD(Fixture, "a pause beyond the deadline is not begun") {
  server.on("GET", kPath).answer(429, "").header("Retry-After", "31");
  CHECK(code_of(finish(client.get(kJobs, key))) == ErrorCode::kTooManyRequests);
  CHECK(paused == Milliseconds(0));
}

TEST_CASE_METHOD(Fixture, "a reset is survived by what may be repeated, and by nothing else") {
  server.on("GET", kPath).reset();
  server.on("GET", kPath).answer(200, "{}");
  CHECK(finish(client.get(kJobs, key)));
  server.on("POST", kAll).reset();
  server.on("POST", kAll).answer(201, "{}");
  CHECK(code_of(finish(client.create(kJobs, job()))) == ErrorCode::kNetwork);
  server.on("PATCH", kPath).answer(200, "{}").cut_after(20);
  server.on("PATCH", kPath).answer(200, "{}");
  CHECK(finish(client.merge_patch(kJobs, key, job())));
  CHECK(server.log().size() == 2 + 1 + 2);
}

TEST_CASE("a create that was never sent is sent again") {
  asio::io_context io;
  FakeClock clock;
  FakeRandom random;
  auto first = std::make_unique<ScriptedServer>(io);
  const ClientConfig config = first->config();
  const unsigned short port = first->port();
  first.reset();
  settle(io);
  const auto transport = make_transport(io, config, TransportLimits());
  ApiClient client(*transport, clock, random);
  std::optional<Result<std::string>> result;
  TaskGroup group(io.get_executor(), nullptr);
  group.spawn("create", Fixture::keep(client.create(kJobs, job()), result));
  REQUIRE(run_until(io, [&clock] { return clock.timers() == 1; }));
  ScriptedServer second(io, port);
  second.on("POST", kAll).answer(201, "{}");
  clock.advance(Milliseconds(100));
  REQUIRE(run_until(io, [&result] { return result.has_value(); }));
  CHECK(result->has_value());
}

TEST_CASE_METHOD(Fixture, "a refusal comes at once, with the server's words") {
  server.on("POST", kAll).answer(422, status_text(422, "Invalid", "spec.x: Required value"));
  const auto created = finish(client.create(kJobs, job()));
  CHECK(code_of(created) == ErrorCode::kInvalid);
  CHECK(created.error().message == "spec.x: Required value");
  server.on("GET", kPath).answer(200, "{not json");
  CHECK(code_of(finish(client.get(kJobs, key))) == ErrorCode::kParse);
}

TEST_CASE_METHOD(Fixture, "a collection is read page by page") {
  server.on("GET", kAll)
      .reply([](const ReceivedRequest& request) {
        const bool is_first = request.query.find("continue=") == std::string::npos;
        return is_first
                   ? ScriptedReply(200, R"({"metadata":{"resourceVersion":"9","continue":"a/b"},)"
                                        R"("items":[{"n":1},{"n":2}]})")
                   : ScriptedReply(200,
                                   R"({"metadata":{"resourceVersion":"9"},"items":[{"n":3}]})");
      })
      .always();
  std::vector<std::string> items;
  const auto take = [&items](std::string_view item) { items.emplace_back(item); };
  const auto page = finish(client.list(kJobs, "x", "labelSelector=a%3Db", take));
  REQUIRE(page);
  CHECK(page->resource_version == "9");
  CHECK(page->continue_token.empty());
  CHECK(items == Lines{R"({"n":1})", R"({"n":2})", R"({"n":3})"});
  CHECK(server.lines() ==
        Lines{std::string("GET ") + kAll + "?labelSelector=a%3Db&limit=500",
              std::string("GET ") + kAll + "?labelSelector=a%3Db&limit=500&continue=a%2Fb"});
}

TEST_CASE_METHOD(Fixture, "lists that fail: an expired token, a cut, nonsense") {
  const auto ignore = [](std::string_view) {};
  server.on("GET", kAll).answer(410, status_text(410, "Expired", "too old"));
  CHECK(code_of(finish(client.list(kJobs, "x", "", ignore))) == ErrorCode::kGone);
  server.on("GET", kAll).answer(200, R"({"items":[{"n":1},{"n":2}]})").cut_after(90);
  CHECK(code_of(finish(client.list(kJobs, "x", "", ignore))) == ErrorCode::kNetwork);
  server.on("GET", kAll).answer(200, R"({"items":[{"n":1}]})");
  server.on("GET", kAll).answer(200, "[1,2");
  CHECK(finish(client.list(kJobs, "x", "", ignore)));
  CHECK(code_of(finish(client.list(kJobs, "x", "", ignore))) == ErrorCode::kParse);
}

TEST_CASE_METHOD(Fixture, "a stream that is refused says why") {
  server.on("GET", "/watch").answer(410, status_text(410, "Expired", "too old"));
  server.on("GET", "/watch").answer(429, "later").header("Retry-After", "7");
  CHECK(code_of(finish(client.stream("/watch?x=1"))) == ErrorCode::kGone);
  const auto busy = finish(client.stream("/watch"));
  CHECK(code_of(busy) == ErrorCode::kTooManyRequests);
  CHECK(busy.error().retry_after == Milliseconds(7'000));
}

TEST_CASE_METHOD(Fixture, "a write answers the text that came, whatever it is") {
  const std::string text = "{\"metadata\" :{\"name\":\"y\"},\n";
  server.on("PATCH", kPath).answer(200, text).times(3);
  server.on("POST", kAll).answer(201, text);
  server.on("DELETE", kPath).answer(200, text);
  const Json object = Json::object({{"metadata", Json::object({{"namespace", "x"}})}});
  CHECK(*finish(client.create(kJobs, object)) == text);
  CHECK(*finish(client.apply(kJobs, key, object, "t", true)) == text);
  CHECK(*finish(client.merge_patch(kJobs, key, object)) == text);
  CHECK(*finish(client.json_patch(kJobs, key, Json::array())) == text);
  CHECK(*finish(client.remove(kJobs, key, DeleteOptions())) == text);
}
