#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kube/client/task_group.hh"
#include "kube/client/transport.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/error_name.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"

using namespace kube;

namespace {

struct Fixture {
  asio::io_context io;
  ScriptedServer server{io};
  TransportLimits limits;
  std::unique_ptr<Transport> transport = make_transport(io, server.config(), limits);

  void use_limits(TransportLimits changed) {
    transport = make_transport(io, server.config(), changed);
  }
  Result<HttpResponse> send(HttpRequest request) {
    return run_task(io, transport->send(std::move(request)));
  }
  Result<HttpResponse> get(const std::string& path) { return send(HttpRequest("GET", path)); }
  ErrorCode failure(HttpRequest request) {
    const auto done = send(std::move(request));
    return done ? ErrorCode::kInternal : done.error().code;
  }
};

HttpRequest post(const std::string& path, std::string body) {
  HttpRequest request("POST", path);
  request.is_idempotent = false;
  request.content_type = "application/json";
  request.body = std::move(body);
  return request;
}

Task<void> send_and_note(Transport& transport, HttpRequest request,
                         std::vector<std::string>& done) {
  const std::string target = request.target;
  const auto result = co_await transport.send(std::move(request));
  done.push_back(target + (result ? " " + std::to_string(result->status)
                                  : " " + std::string(test::name_of(result.error().code))));
}

using Lines = std::vector<std::string>;

// A file that holds a token, as long as the test goes.
struct TokenFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("kube-token-" + std::to_string(::getpid()));
  TokenFile() = default;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  ~TokenFile() { std::filesystem::remove(path); }
  void write(const std::string& token) const { std::ofstream(path) << token; }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "requests share a connection that is kept open") {
  server.on("GET", "/a").answer(200, "one").header("X-Note", "yes");
  server.on("POST", "/b").answer(201, "two");
  const auto first = get("/a");
  REQUIRE(first);
  CHECK(first->status == 200);
  CHECK(first->body == "one");
  CHECK(first->header("x-note") == "yes");
  CHECK(first->header("none").empty());
  const auto second = send(post("/b", "{}"));
  REQUIRE(second);
  CHECK(second->status == 201);
  CHECK(server.connections() == 1);
  CHECK(server.log()[1].body == "{}");
  CHECK(server.log()[1].headers.at("content-type") == "application/json");
  CHECK(server.log()[1].headers.at("user-agent") == "trainer");
}

TEST_CASE_METHOD(Fixture, "a path in the server's URL comes before every target") {
  ClientConfig config = server.config();
  config.server += "/prefix/";
  transport = make_transport(io, config, limits);
  server.on("GET", "/prefix/a").answer(200, "x");
  CHECK(get("/a")->status == 200);
}

TEST_CASE_METHOD(Fixture, "requests above the bound wait their turn in order") {
  limits.max_in_flight = 1;
  use_limits(limits);
  std::vector<std::string> done;
  TaskGroup group(io.get_executor(), nullptr);
  for (const char* const path : {"/a", "/b", "/c"}) {
    server.on("GET", path).answer(200, "x");
    group.spawn(path, send_and_note(*transport, HttpRequest("GET", path), done));
  }
  run_task(io, group.join());
  CHECK(done == Lines{"/a 200", "/b 200", "/c 200"});
  CHECK(server.connections() == 1);
}

TEST_CASE_METHOD(Fixture, "who waits for a connection has a deadline, and can be cancelled") {
  limits.max_in_flight = 1;
  use_limits(limits);
  server.on("GET", "/held").hold();
  server.on("GET", "/after").answer(200, "x");
  std::vector<std::string> done;
  TaskGroup group(io.get_executor(), nullptr);
  TaskGroup doomed(io.get_executor(), nullptr);
  group.spawn("held", send_and_note(*transport, HttpRequest("GET", "/held"), done));
  settle(io);
  HttpRequest brief("GET", "/brief");
  brief.deadline = Milliseconds(5);
  doomed.spawn("never", send_and_note(*transport, HttpRequest("GET", "/never"), done));
  group.spawn("brief", send_and_note(*transport, std::move(brief), done));
  REQUIRE(run_until(io, [&done] { return !done.empty(); }));
  CHECK(done == Lines{"/brief Timeout"});
  doomed.cancel();
  run_task(io, doomed.join());
  group.cancel();
  run_task(io, group.join());
  CHECK(get("/after")->status == 200);
}

TEST_CASE_METHOD(Fixture, "a reset of a used connection before the answer is forgiven once") {
  server.on("GET", "/warm").answer(200, "x").always();
  REQUIRE(get("/warm"));
  SECTION("for an idempotent request") {
    server.on("GET", "/a").reset();
    server.on("GET", "/a").answer(200, "second");
    CHECK(get("/a")->body == "second");
    CHECK(server.connections() == 2);
  }
  SECTION("but not twice") {
    server.on("GET", "/a").reset().times(2);
    server.on("GET", "/a").answer(200, "third");
    CHECK(failure(HttpRequest("GET", "/a")) == ErrorCode::kNetwork);
  }
  SECTION("and never for a create") {
    server.on("POST", "/a").reset();
    server.on("POST", "/a").answer(201, "doubled");
    CHECK(failure(post("/a", "{}")) == ErrorCode::kNetwork);
    CHECK(server.log().size() == 2);
  }
  SECTION("nor after the first byte") {
    server.on("GET", "/a").answer(200, "lost").cut_after(10);
    server.on("GET", "/a").answer(200, "second");
    CHECK(failure(HttpRequest("GET", "/a")) == ErrorCode::kNetwork);
  }
}

TEST_CASE_METHOD(Fixture, "a reset of a new connection is an error") {
  server.on("GET", "/a").reset();
  CHECK(failure(HttpRequest("GET", "/a")) == ErrorCode::kNetwork);
  CHECK(server.log().size() == 1);
}

TEST_CASE_METHOD(Fixture,
                 "a connection that the server closed meanwhile is not used for a create") {
  server.on("GET", "/warm").answer(200, "x").close();
  REQUIRE(get("/warm"));
  settle(io);
  server.on("POST", "/a").answer(201, "x");
  CHECK(send(post("/a", "{}"))->status == 201);
  CHECK(server.connections() == 2);
}

TEST_CASE_METHOD(Fixture, "an answer that does not come ends with the deadline") {
  server.on("GET", "/a").hold();
  server.on("GET", "/b").answer(200, "slow").slowly(Milliseconds(5));
  HttpRequest request("GET", "/a");
  request.deadline = Milliseconds(20);
  CHECK(failure(request) == ErrorCode::kTimeout);
  request.target = "/b";
  CHECK(failure(request) == ErrorCode::kTimeout);
}

TEST_CASE_METHOD(Fixture, "slow bytes within the deadline are waited for") {
  server.on("GET", "/a").answer(200, "slow").slowly(Milliseconds(1));
  CHECK(get("/a")->body == "slow");
}

TEST_CASE_METHOD(Fixture, "a cancelled request leaves no half-used connection behind") {
  server.on("GET", "/a").hold();
  server.on("GET", "/b").answer(200, "x");
  std::vector<std::string> done;
  TaskGroup group(io.get_executor(), nullptr);
  group.spawn("a", send_and_note(*transport, HttpRequest("GET", "/a"), done));
  REQUIRE(run_until(io, [this] { return server.log().size() == 1; }));
  group.cancel();
  run_task(io, group.join());
  CHECK(done == Lines{"/a Cancelled"});
  REQUIRE(server.log().size() == 1);
  CHECK(get("/b")->body == "x");
  CHECK(server.connections() == 2);
}

TEST_CASE_METHOD(Fixture, "a body above the limit is refused, however it is announced") {
  limits.max_response_bytes = 1'000;
  use_limits(limits);
  server.on("GET", "/length").answer(200, std::string(1'001, 'x'));
  server.on("GET", "/chunks").stream({std::string(600, 'x'), std::string(600, 'x')});
  server.on("GET", "/fits").answer(200, std::string(1'000, 'x'));
  CHECK(failure(HttpRequest("GET", "/length")) == ErrorCode::kTooLarge);
  CHECK(failure(HttpRequest("GET", "/chunks")) == ErrorCode::kTooLarge);
  CHECK(get("/fits")->body.size() == 1'000);
}

TEST_CASE_METHOD(Fixture,
                 "a body can be taken in pieces, without a limit; a refusal is kept whole") {
  limits.max_response_bytes = 100;
  use_limits(limits);
  std::string pieces;
  HttpRequest request("GET", "/a");
  request.on_body = [&pieces](std::string_view piece) { pieces += piece; };
  server.on("GET", "/a").answer(200, std::string(100'000, 'x'));
  server.on("GET", "/a").answer(403, "no");
  const auto done = send(request);
  REQUIRE(done);
  CHECK(done->body.empty());
  CHECK(pieces == std::string(100'000, 'x'));
  CHECK(send(request)->body == "no");
  CHECK(pieces.size() == 100'000);
}

TEST_CASE_METHOD(Fixture, "a body cut short and an answer that is no HTTP are errors") {
  server.on("GET", "/cut").answer(200, std::string(5'000, 'x')).cut_after(3'000);
  server.on("GET", "/long").answer(200, "x").header("X-Long", std::string(20'000, 'x'));
  CHECK(failure(HttpRequest("GET", "/cut")) == ErrorCode::kNetwork);
  CHECK(failure(HttpRequest("GET", "/long")) == ErrorCode::kTooLarge);
}

TEST_CASE("a server that is not there is a network error that says where") {
  asio::io_context io;
  ClientConfig config;
  {
    ScriptedServer gone(io);
    config = gone.config();
  }
  settle(io);
  const auto transport = make_transport(io, config, TransportLimits());
  bool was_written = false;
  HttpRequest request("GET", "/a?secret=1");
  request.on_write = [&was_written] {
    was_written = true;
    return Result<void>();
  };
  const auto done = run_task(io, transport->send(request));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::kNetwork);
  CHECK_THAT(done.error().message, Catch::StartsWith("GET " + config.server.substr(7) + "/a: "));
  CHECK_FALSE(was_written);
}

TEST_CASE_METHOD(Fixture, "after a 401 the token file is read again and the request sent again") {
  const TokenFile file;
  file.write("old\n");
  ClientConfig config = server.config();
  config.token_file = file.path.string();
  transport = make_transport(io, config, limits);
  server.on("POST", "/a")
      .reply([&file](const ReceivedRequest& request) {
        const bool is_old = request.headers.at("authorization") == "Bearer old";
        if (is_old) file.write("new\n");
        return ScriptedReply(is_old ? 401 : 201, "x");
      })
      .always();
  CHECK(send(post("/a", "{}"))->status == 201);
  REQUIRE(server.log().size() == 2);
  CHECK(server.log()[1].headers.at("authorization") == "Bearer new");

  SECTION("a 401 with a token that is still the same is the answer") {
    server.on("GET", "/b").answer(401, "x").always();
    CHECK(get("/b")->status == 401);
    CHECK(server.log().size() == 3);
  }
  SECTION("a file that holds no token leaves the last one in use") {
    file.write("two words");
    server.on("GET", "/b").answer(401, "x").always();
    CHECK(get("/b")->status == 401);
    CHECK(server.log().back().headers.at("authorization") == "Bearer new");
  }
}

TEST_CASE_METHOD(Fixture, "of requests refused together for an old token each is sent again") {
  const TokenFile file;
  file.write("old\n");
  ClientConfig config = server.config();
  config.token_file = file.path.string();
  transport = make_transport(io, config, limits);
  std::vector<std::string> done;
  TaskGroup group(io.get_executor(), nullptr);
  int refused = 0;
  for (const char* const target : {"/a", "/b"}) {
    server.on("GET", target)
        .reply([&file, &refused](const ReceivedRequest& request) {
          if (request.headers.at("authorization") == "Bearer new") return ScriptedReply(200, "x");
          ++refused;
          file.write("new\n");
          return ScriptedReply(401, "x");
        })
        .always();
    group.spawn(target, send_and_note(*transport, HttpRequest("GET", target), done));
  }
  run_task(io, group.join());
  std::sort(done.begin(), done.end());
  CHECK(done == Lines{"/a 200", "/b 200"});
  CHECK(refused == 2);
  CHECK(server.log().size() == 4);
}

namespace {

Task<Result<std::unique_ptr<HttpStream>>> open(Transport& transport, std::string path) {
  HttpRequest request("GET", std::move(path));
  co_return co_await transport.open(std::move(request));
}

// Reads to the end or the first error, which is appended by its name.
Task<std::string> read_all(HttpStream& stream, Milliseconds idle) {
  std::string text;
  for (;;) {
    const auto piece = co_await stream.read_some(idle);
    if (!piece) co_return text + "!" + std::string(test::name_of(piece.error().code));
    if (piece->empty()) co_return text;
    text += *piece;
  }
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a stream is quiet until more of it comes, be it the end") {
  server.on("GET", "/s").stream({"one"}).stay_open();
  const auto stream = run_task(io, open(*transport, "/s"));
  REQUIRE(stream);
  CHECK(*run_task(io, (*stream)->read_some(Milliseconds(5'000))) == "one");
  CHECK((*stream)->is_quiet());
  server.drop_connections();
  CHECK(run_until(io, [&] { return !(*stream)->is_quiet(); }));
}

TEST_CASE_METHOD(Fixture, "a stream is read in pieces, on a connection of its own") {
  server.on("GET", "/warm").answer(200, "x").always();
  REQUIRE(get("/warm"));
  server.on("GET", "/s").stream({"one", "two", std::string(100'000, 'x')});
  const auto stream = run_task(io, open(*transport, "/s"));
  REQUIRE(stream);
  CHECK((*stream)->status() == 200);
  CHECK((*stream)->header("content-type") == "application/json");
  CHECK(run_task(io, read_all(**stream, Milliseconds(5'000))) ==
        "onetwo" + std::string(100'000, 'x'));
  // The request took the idle connection, and keeps it to its end.
  CHECK(server.connections() == 1);
  REQUIRE(get("/warm"));
  CHECK(server.connections() == 2);
}

TEST_CASE_METHOD(Fixture, "a reset of a used connection is forgiven once to a stream, too") {
  server.on("GET", "/warm").answer(200, "x");
  REQUIRE(get("/warm"));
  SECTION("once") {
    server.on("GET", "/s").reset();
    server.on("GET", "/s").stream({"second"});
    const auto stream = run_task(io, open(*transport, "/s"));
    REQUIRE(stream);
    CHECK(run_task(io, read_all(**stream, Milliseconds(5'000))) == "second");
    CHECK(server.connections() == 2);
  }
  SECTION("but not twice") {
    server.on("GET", "/s").reset().times(2);
    const auto stream = run_task(io, open(*transport, "/s"));
    REQUIRE(!stream);
    CHECK(stream.error().code == ErrorCode::kNetwork);
  }
}

TEST_CASE_METHOD(Fixture, "a stream ends by silence, by a cut, and with a refusal's body") {
  server.on("GET", "/silent").stream({"one"}).stay_open();
  server.on("GET", "/cut").stream({"one", "two and"}).cut_in_last_chunk();
  server.on("GET", "/no").answer(410, "gone");
  server.on("GET", "/log").answer(200, std::string(300'000, 'x'));
  const auto silent = run_task(io, open(*transport, "/silent"));
  // The silence begins once the sent bytes have arrived, however slow the machine is.
  const auto said = run_task(io, (*silent)->read_some(Milliseconds(5'000)));
  REQUIRE(said);
  CHECK(*said == "one");
  CHECK(run_task(io, read_all(**silent, Milliseconds(30))) == "!Timeout");
  const auto cut = run_task(io, open(*transport, "/cut"));
  CHECK_THAT(run_task(io, read_all(**cut, Milliseconds(5'000))), Catch::EndsWith("!Network"));
  const auto log = run_task(io, open(*transport, "/log"));  // its length is known beforehand
  CHECK(run_task(io, read_all(**log, Milliseconds(5'000))).size() == 300'000);
  const auto refused = run_task(io, open(*transport, "/no"));
  REQUIRE(refused);
  CHECK((*refused)->status() == 410);
  CHECK(run_task(io, read_all(**refused, Milliseconds(5'000))) == "gone");
}
