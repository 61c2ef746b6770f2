#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kube/client/kubeconfig.hh"
#include "kube/model/digest.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/certificates.hh"

using namespace kube;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  fs::path folder = fs::temp_directory_path() / ("kube-config-" + std::to_string(::getpid()));
  Fixture() { fs::create_directories(folder); }
  ~Fixture() { fs::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  // A file with one context, whose cluster and user have these lines.
  Result<ClientConfig> load(const std::string& cluster, const std::string& user,
                            const std::string& context = "",
                            const std::string& of_context = "") const {
    return load_config(write("config",
                             "current-context: one\n"
                             "contexts:\n- name: one\n  context: {cluster: c, user: u" +
                                 of_context +
                                 "}\n"
                                 "- name: two\n  context: {cluster: c, user: u, namespace: team}\n"
                                 "- name: lost\n  context: {cluster: none, user: u}\n"
                                 "clusters:\n- name: c\n  cluster: {" +
                                 cluster +
                                 "}\n"
                                 "users:\n- name: u\n  user: {" +
                                 user + "}\n"),
                       context);
  }
};

const std::string kServer = "server: 'https://host:6443'";

// These configurations are refused: lines of the cluster and of the user, a context's name or more
// lines of it, and the text in the message.
struct Refused {
  std::string cluster;
  std::string user;
  std::string context;
  std::string expected;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "inline data, files by relative path, and tokens") {
  const Certificate& made = test_certificate();
  write("pki/ca.pem", made.certificate);
  const auto by_path =
      load(kServer + ", certificate-authority: pki/ca.pem", "token: abc, tokenFile: token.txt");
  REQUIRE(by_path);
  CHECK(by_path->server == "https://host:6443");
  CHECK(by_path->ca_pem == made.certificate);
  CHECK(by_path->token.reveal() == "abc");
  CHECK(by_path->token_file == (folder / "token.txt").string());
  CHECK(by_path->ns == "default");
  CHECK_FALSE(by_path->insecure_skip_tls_verify);

  const auto inline_data =
      load(kServer + ", certificate-authority-data: " + base64_encode(made.certificate) +
               ", tls-server-name: other, insecure-skip-tls-verify: true",
           "client-certificate-data: " + base64_encode(made.certificate) +
               ", client-key-data: " + base64_encode(made.key),
           "two");
  REQUIRE(inline_data);
  CHECK(inline_data->client_certificate_pem == made.certificate);
  CHECK(inline_data->client_key_pem.reveal() == made.key);
  CHECK(inline_data->tls_server_name == "other");
  CHECK(inline_data->insecure_skip_tls_verify);
  CHECK(inline_data->ns == "team");
}

TEST_CASE_METHOD(Fixture, "what is wrong is said with file and entry") {
  const Certificate& made = test_certificate();
  const std::string certificate = base64_encode(made.certificate);
  const Refused rows[] = {
      {kServer, "", "none", "contexts has no entry \"none\""},
      {kServer, "", "lost", "clusters has no entry \"none\""},
      {"server: 'host:6443'", "", "", "server \"host:6443\" has neither the scheme"},
      {kServer + ", certificate-authority-data: '!'", "", "",
       "certificate-authority-data is not base64"},
      {kServer + ", certificate-authority: none.pem", "", "", "none.pem cannot be read"},
      {kServer + ", certificate-authority-data: " + base64_encode("nonsense"), "", "",
       "CA certificate is unusable"},
      {kServer + ", proxy-url: 'http://p'", "", "", "proxy-url is not supported"},
      {kServer, "exec: {command: aws}", "", "user \"u\" signs in with exec"},
      {kServer, "auth-provider: {name: gcp}", "", "user \"u\" signs in with auth-provider"},
      {kServer, "username: me, password: secret", "", "signs in with a password"},
      {kServer, "as: somebody", "", "impersonates \"somebody\""},
      {kServer, "client-certificate-data: " + certificate, "", "only one of client-certificate"},
      {kServer,
       "client-certificate-data: " + certificate +
           ", client-key-data: " + base64_encode("nonsense"),
       "", "client's key is unusable"},
      {kServer,
       "client-certificate-data: " + certificate + ", client-key-data: " +
           base64_encode("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                         "MIGjMF8GCSqGSIb3DQEFDTBSMDEGCSqGSIb3DQEFDDAkBBDqHKFJJCzmVvvhTMRZ\n"
                         "-----END ENCRYPTED PRIVATE KEY-----\n"),
       "", "client's key is encrypted"},
  };
  for (const Refused& row : rows) {
    INFO(row.expected);
    const auto loaded = load(row.cluster, row.user, row.context);
    REQUIRE_FALSE(loaded);
    CHECK_THAT(loaded.error().message, kube::test::contains(row.expected));
    CHECK_THAT(loaded.error().message, Catch::StartsWith((folder / "config").string()));
    CHECK_THAT(loaded.error().message, !Catch::Contains("secret"));
  }
  CHECK_THAT(load_config(write("broken", "a: [")).error().message,
             Catch::StartsWith((folder / "broken").string()));
  CHECK(load_config((folder / "absent").string()).error().code == ErrorCode::kNotFound);
}

TEST_CASE_METHOD(Fixture, "what says nothing is as good as absent") {
  const auto loaded = load(kServer +
                               ", proxy-url: '', tls-server-name: null, certificate-authority: ''"
                               ", insecure-skip-tls-verify: null",
                           "exec: null, auth-provider: null, username: '', password: '', as: '', "
                           "as-groups: [], tokenFile: '', token: abc",
                           "", ", namespace: ''");
  if (!loaded) FAIL(loaded.error().message);
  CHECK(loaded->ns == "default");
  CHECK(loaded->token.reveal() == "abc");
  CHECK(loaded->token_file.empty());
  CHECK_FALSE(loaded->insecure_skip_tls_verify);
  CHECK(load(kServer, "", "", ", namespace: null")->ns == "default");
}

TEST_CASE_METHOD(Fixture, "a value of another type is refused, with its place and a way out") {
  const Refused rows[] = {
      {kServer, "token: abc", ", namespace: 2024",
       "contexts[one].context.namespace: 2024 is of type integer, not string; put it in quotes"},
      {kServer, "token: 98765", "",
       "users[u].user.token: the value is of type integer, not string; put it in quotes"},
      {kServer, "token: [98765]", "", "users[u].user.token: the value is of type array"},
      {kServer, "client-key-data: 98765", "", "users[u].user.client-key-data: the value is of"},
      {kServer, "tokenFile: true", "", "users[u].user.tokenFile: true is of type boolean"},
      {kServer + ", insecure-skip-tls-verify: 'true'", "", "",
       "clusters[c].cluster.insecure-skip-tls-verify: \"true\" is of type string, not boolean; "
       "write true or false, without quotes"},
      {"server: 6443", "", "", "clusters[c].cluster.server: 6443 is of type integer"},
      {kServer + ", certificate-authority: [a]", "", "",
       "clusters[c].cluster.certificate-authority: [\"a\"] is of type array, not string; write "
       "one string"},
      {kServer, "as-groups: [admins]", "", "impersonates [\"admins\"] (as-groups)"},
      {kServer, "username: 5", "", "signs in with a password"},
      {kServer, "password: 98765", "", "signs in with a password"},
      {kServer, "exec: {}", "", "signs in with exec"},
  };
  for (const Refused& row : rows) {
    INFO(row.expected);
    const auto loaded = load(row.cluster, row.user, "", row.context);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == ErrorCode::kInvalid);
    CHECK_THAT(loaded.error().message, kube::test::contains(row.expected));
    CHECK_THAT(loaded.error().message, Catch::StartsWith((folder / "config").string() + ": "));
    CHECK_THAT(loaded.error().message, !Catch::Contains("98765"));
  }
  const std::pair<std::string, std::string> files[] = {
      {"current-context: 1\n", "current-context: 1 is of type integer"},
      {"current-context: a\ncontexts: {a: b}\n", "contexts: it is of type object, not array"},
      {"current-context: a\ncontexts: [{name: b}, {name: 7}]\n", "contexts[1].name: 7 is of type"},
      {"current-context: a\ncontexts: [{name: a, context: {user: u}}]\n",
       "contexts[a].context.cluster: is not set"},
      {"- a\n", "is no kubeconfig: it is of type array, not object"},
      {"# new\n", "found none"},
      {"\n", "current-context is not set"},
  };
  for (const auto& [text, expected] : files) {
    INFO(text);
    const auto loaded = load_config(write("config", text));
    REQUIRE_FALSE(loaded);
    CHECK_THAT(loaded.error().message, kube::test::contains(expected));
  }
}

TEST_CASE_METHOD(Fixture, "no user is anonymous by mistake") {
  const auto error_of = [this](const std::string& user) {
    const auto loaded = load(kServer, user);
    return loaded ? "token " + loaded->token.reveal() : loaded.error().message;
  };
  const std::string file = (folder / "token.txt").string();
  CHECK_THAT(
      error_of("tokenFile: token.txt"),
      Catch::EndsWith("users[u].user.tokenFile: " + file + " cannot be read; write a token there"));
  write("token.txt", " \n");
  CHECK_THAT(error_of("tokenFile: token.txt"), Catch::EndsWith(file + " holds no token"));
  write("token.txt", "abc def\n");
  CHECK_THAT(error_of("tokenFile: token.txt"), Catch::EndsWith(file + " holds no token"));
  write("token.txt", "abc\n");
  CHECK(error_of("tokenFile: token.txt") == "token abc");
  CHECK(error_of("tokenFile: token.txt, token: other") == "token other");
  CHECK_THAT(error_of("token: 'abc def'"),
             Catch::Contains("users[u].user.token: there are") && !Catch::Contains("abc def"));
}

TEST_CASE_METHOD(Fixture, "of several files the first that says something counts") {
  const auto list = [this](std::initializer_list<const char*> names) {
    std::string all;
    for (const char* const name : names) all += (all.empty() ? "" : ":") + (folder / name).string();
    ::setenv("KUBECONFIG", all.c_str(), 1);
    return all;
  };
  write("users/a", "users: [{name: u, user: {tokenFile: token}}]\ncurrent-context: ''\n");
  write("users/token", "of-a");
  write("b",
        "current-context: one\n"
        "contexts: [{name: one, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {token: of-b}}, {name: v, user: {token: v-of-b}}]\n");
  write("c",
        "current-context: two\n"
        "contexts: [{name: one, context: {cluster: none}},\n"
        "           {name: two, context: {cluster: c, user: v, namespace: team}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://of-c'}}]\n");
  write("empty", "\n");
  list({"absent", "users/a", "empty", "b", "c"});
  const auto merged = load_config("");
  if (!merged) FAIL(merged.error().message);
  CHECK(merged->server == "http://of-c");
  CHECK(merged->token.reveal() == "of-a");
  CHECK(merged->token_file == (folder / "users/token").string());
  CHECK(merged->ns == "default");
  const auto other = load_config("", "two");
  REQUIRE(other);
  CHECK(other->token.reveal() == "v-of-b");
  CHECK(other->ns == "team");

  const std::string some = list({"b", "users/a"});
  CHECK(load_config("").error().message == some + ": clusters has no entry \"c\"");
  const std::string none = list({"x", "y"});
  CHECK(load_config("").error().message == "none of the files in KUBECONFIG exists: " + none);
  CHECK(load_config("").error().code == ErrorCode::kNotFound);
  list({"x"});
  CHECK(load_config("").error().message == (folder / "x").string() + " cannot be read");
  // An error names the file that has it.
  write("d", "contexts: [{name: two, context: {cluster: 5}}]\n");
  list({"b", "d", "c"});
  CHECK_THAT(load_config("", "two").error().message,
             Catch::StartsWith((folder / "d").string() + ": contexts[two].context.cluster: 5"));
  ::unsetenv("KUBECONFIG");
}

TEST_CASE_METHOD(Fixture, "without a path: KUBECONFIG, the pod's account, the home folder") {
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::setenv("HOME", folder.c_str(), 1);
  ::unsetenv("KUBECONFIG");
  CHECK(load_config("").error().code == ErrorCode::kNotFound);
  CHECK(in_cluster_config().error().code == ErrorCode::kNotFound);

  write(".kube/config",
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://home'}}]\n");
  CHECK(load_config("")->server == "http://home");
  const std::string named =
      write("named",
            "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
            "clusters: [{name: c, cluster: {server: 'http://named'}}]\n");
  ::setenv("KUBECONFIG", named.c_str(), 1);
  CHECK(load_config("")->server == "http://named");
  ::setenv("KUBECONFIG", (":" + named + ":" + named).c_str(), 1);
  CHECK(load_config("")->server == "http://named");
  ::unsetenv("KUBECONFIG");

  CHECK(load_config("", "a")->server == "http://home");
  CHECK_THAT(load_config("", "b").error().message, Catch::Contains("no entry \"b\""));
  // In a pod: the account is the controller's; a person's program and a named context have a file.
  ::setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  CHECK(load_config("", "a")->server == "http://home");
  CHECK(load_config("", "", ExecUsers::kAllowed)->server == "http://home");
  if (!fs::exists("/var/run/secrets/kubernetes.io/serviceaccount/token")) {
    write("new/.kube/config", "");  // kubectl leaves such a file
    ::setenv("HOME", (folder / "new").c_str(), 1);
    CHECK_THAT(load_config("", "", ExecUsers::kAllowed).error().message,
               Catch::Contains("current-context is not set"));
  }
  ::setenv("HOME", (folder / "empty").c_str(), 1);
  CHECK_THAT(load_config("", "a").error().message, Catch::Contains("no context \"a\""));
  if (!fs::exists("/var/run/secrets/kubernetes.io/serviceaccount/token"))
    CHECK_THAT(load_config("").error().message, Catch::Contains("service account"));
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::unsetenv("KUBERNETES_SERVICE_PORT");
}
