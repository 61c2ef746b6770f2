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
                            const std::string& context = "") const {
    return load_config(write("config",
                             "current-context: one\n"
                             "contexts:\n- name: one\n  context: {cluster: c, user: u}\n"
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
  struct Row {
    std::string cluster;
    std::string user;
    std::string context;
    std::string expected;
  };
  const Row rows[] = {
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
  };
  for (const Row& row : rows) {
    INFO(row.expected);
    const auto loaded = load(row.cluster, row.user, row.context);
    REQUIRE_FALSE(loaded);
    CHECK_THAT(loaded.error().message, Catch::Contains(row.expected));
    CHECK_THAT(loaded.error().message, Catch::StartsWith((folder / "config").string()));
    CHECK_THAT(loaded.error().message, !Catch::Contains("secret"));
  }
  CHECK_THAT(load_config(write("broken", "a: [")).error().message,
             Catch::StartsWith((folder / "broken").string()));
  CHECK(load_config((folder / "absent").string()).error().code == ErrorCode::kNotFound);
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
  ::setenv("KUBECONFIG", (named + ":" + named).c_str(), 1);
  CHECK(load_config("").error().code == ErrorCode::kInvalid);
  ::unsetenv("KUBECONFIG");
}
