// Users of a kubeconfig who sign in with another program, a script here.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kube/client/exec_plugin.hh"
#include "kube/client/transport.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/certificates.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"

using namespace kube;
namespace fs = std::filesystem;

namespace {

const std::string kV1 = "client.authentication.k8s.io/v1";
const Time kNow = *Time::parse("2026-08-20T10:00:00Z");

std::string credential(const std::string& status, const std::string& version = kV1) {
  return R"({"kind": "ExecCredential", "apiVersion": ")" + version + R"(", "status": )" + status +
         "}";
}

struct Fixture {
  fs::path folder = fs::temp_directory_path() / ("kube-exec-" + std::to_string(::getpid()));
  Fixture() { fs::create_directories(folder / "bin"); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() { fs::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder / name;
    std::ofstream(path, std::ios::binary) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  // This plugin notes each run, and then runs `body`.
  void write_plugin(const std::string& body) const {
    write("bin/login", "#!/bin/sh\ncd " + folder.string() + "\necho run >> runs\n" + body);
  }
  std::size_t runs() const { return read("runs").size() / 4; }

  Result<ClientConfig> load(const std::string& exec, const std::string& server = "https://h:6443",
                            const std::string& of_cluster = "",
                            ExecUsers users = ExecUsers::kAllowed) const {
    return load_config(write("config",
                             "current-context: c\n"
                             "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                             "clusters: [{name: c, cluster: {server: '" +
                                 server + "'" + of_cluster +
                                 "}}]\n"
                                 "users: [{name: u, user: {exec: {" +
                                 exec + "}}}]\n"),
                       "", users);
  }
};

const std::string kExec = "apiVersion: " + kV1 + ", command: ./bin/login, interactiveMode: Never";

}  // namespace

TEST_CASE_METHOD(Fixture, "a plugin gets its arguments, variables and the cluster") {
  const std::string ca = test_certificate().certificate;
  write_plugin("echo \"$1 $2 $REGION\" > words\necho \"$KUBERNETES_EXEC_INFO\" > info\ncat <<E\n" +
               credential(R"({"token": "t1"})") + "\nE\n");
  const auto config = load(
      kExec +
          ", args: [get-token, --cluster], env: [{name: REGION, value: eu-1}], "
          "provideClusterInfo: true",
      "https://h:6443",
      ", certificate-authority-data: " + base64_encode(ca) +
          ", extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: a}}]");
  if (!config) FAIL(config.error().message);
  REQUIRE(config->exec_plugin);
  CHECK(runs() == 0);  // reading a file starts nothing
  REQUIRE(config->exec_plugin->renew(kNow));
  CHECK(config->exec_plugin->credential().token.reveal() == "t1");
  CHECK(read("words") == "get-token --cluster eu-1\n");
  const auto info = parse_json(read("info"));
  REQUIRE(info);
  CHECK(info->get_string("apiVersion") == kV1);
  const Json& spec = info->get("spec");
  CHECK_FALSE(spec.get_bool("interactive", true));
  CHECK(spec.get("cluster").get_string("server") == "https://h:6443");
  CHECK(spec.get("cluster").get_string("certificate-authority-data") == base64_encode(ca));
  CHECK(spec.get("cluster").get("config").get_string("audience") == "a");
}

TEST_CASE_METHOD(Fixture, "a credential is kept until it expires") {
  const auto [status, expected] = GENERATE(table<std::string, std::size_t>({
      {R"({"token": "t"})", 1},
      {R"({"token": "t", "expirationTimestamp": "2026-08-20T10:30:00Z"})", 1},
      {R"({"token": "t", "expirationTimestamp": "2026-08-20T10:00:00Z"})", 2},
  }));
  CAPTURE(status);
  write_plugin("echo '" + credential(status) + "'\n");
  const auto config = load(kExec);
  REQUIRE(config);
  REQUIRE(config->exec_plugin->renew(kNow));
  REQUIRE(config->exec_plugin->renew(kNow));
  CHECK(runs() == expected);
  config->exec_plugin->expire();
  REQUIRE(config->exec_plugin->renew(kNow));
  CHECK(runs() == expected + 1);
}

TEST_CASE("what a plugin may print") {
  struct Row {
    std::string output;
    std::string expected;  // "": it is accepted
  };
  const std::string pair = R"("clientCertificateData": "c", "clientKeyData": "secret")";
  const Row rows[] = {
      {credential("{" + pair + "}"), ""},
      {credential(R"({"token": "secret", )" + pair + "}"), ""},
      {credential(R"({"token": "secret"})", kV1 + "beta1"), "another apiVersion than " + kV1},
      {"secret", "no ExecCredential"},
      {credential("{}"), "neither a token nor a certificate"},
      {credential(R"({"clientKeyData": "secret"})"), "only one of"},
      {credential(R"({"token": "a secret"})"), "characters that no token has"},
      {credential(R"({"token": "secret", "expirationTimestamp": "soon"})"), "no RFC 3339 time"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.output);
    const auto read = read_exec_credential(kV1, row.output);
    CHECK(read.has_value() == row.expected.empty());
    if (read) continue;
    CHECK_THAT(read.error().message, kube::test::contains(row.expected));
    CHECK_THAT(read.error().message, !Catch::Contains("secret"));
  }
}

TEST_CASE_METHOD(Fixture, "a plugin that fails is named, with how it ended and the install hint") {
  write_plugin("echo secret\nexit 3\n");
  auto config = load(kExec + ", installHint: 'get it from example.com'");
  REQUIRE(config);
  auto renewed = config->exec_plugin->renew(kNow);
  REQUIRE_FALSE(renewed);
  CHECK_THAT(renewed.error().message, Catch::StartsWith("exec plugin \"") &&
                                          Catch::Contains("/bin/login\": ended with exit status 3"
                                                          "\nget it from example.com"));
  CHECK_THAT(renewed.error().message, !Catch::Contains("secret"));
  CHECK_FALSE(renewed.error().is_transient());

  config = load("apiVersion: " + kV1 +
                ", command: no-such-login, interactiveMode: Never, installHint: install it");
  REQUIRE(config);
  renewed = config->exec_plugin->renew(kNow);
  REQUIRE_FALSE(renewed);
  CHECK(renewed.error().message ==
        "exec plugin \"no-such-login\": cannot be started: No such file or directory\ninstall it");
}

TEST_CASE_METHOD(Fixture, "an entry that is not understood is refused with its place") {
  const std::pair<std::string, std::string> rows[] = {
      {"command: login", "apiVersion: \"\" is not supported: write client.authentication"},
      {"apiVersion: client.authentication.k8s.io/v1alpha1, command: login", "is not supported"},
      {"apiVersion: " + kV1 + ", interactiveMode: Never", "command: is not set"},
      {"apiVersion: " + kV1 + ", command: login", "interactiveMode: \"\": write Never"},
      {kExec + ", args: [7]", "args: write each one as a string"},
      {kExec + ", env: [{value: x}]", "env: write each one as a name and a value"},
  };
  for (const auto& [exec, expected] : rows) {
    CAPTURE(exec);
    const auto loaded = load(exec);
    REQUIRE_FALSE(loaded);
    CHECK_THAT(loaded.error().message,
               Catch::Contains("users[u].user.exec: ") && kube::test::contains(expected));
  }
  // The old version's default.
  CHECK(load("apiVersion: " + kV1 + "beta1, command: login"));
  CHECK_THAT(load(kExec, "https://h:1", "", ExecUsers::kRefused).error().message,
             Catch::Contains("signs in with exec"));
}

TEST_CASE_METHOD(Fixture, "after a 401 the plugin runs again and the request is sent again") {
  write_plugin("echo '" + credential(R"({"token": "TOKEN"})") +
               "' | sed \"s/TOKEN/t$(wc -l < runs)/\"\n");
  asio::io_context io;
  ScriptedServer server(io);
  const auto config = load(kExec, server.config().server);
  if (!config) FAIL(config.error().message);
  const auto transport = make_transport(io, *config, TransportLimits());
  std::string good = "Bearer t1";
  server.on("GET", "/a").always().reply([&good](const ReceivedRequest& request) {
    return ScriptedReply(request.headers.at("authorization") == good ? 200 : 401, "x");
  });
  const auto get = [&] { return run_task(io, transport->send(HttpRequest("GET", "/a")))->status; };
  CHECK(get() == 200);
  CHECK(get() == 200);
  CHECK(runs() == 1);
  good = "Bearer t2";
  CHECK(get() == 200);
  CHECK(runs() == 2);
  good = "Bearer other";
  CHECK(get() == 401);
  CHECK(runs() == 3);
}
