#include "kube/client/url.hh"
#include "kube/tests/catch.hh"

using namespace kube;

TEST_CASE("servers as kubeconfig files name them") {
  struct Row {
    const char* text;
    bool is_tls;
    const char* host;
    const char* port;
    const char* base;
    const char* authority;
  };
  const Row rows[] = {
      {"https://host:6443", true, "host", "6443", "", "host:6443"},
      {"https://host", true, "host", "443", "", "host:443"},
      {"http://host/", false, "host", "80", "", "host:80"},
      {"https://10.0.0.1:443/k8s/clusters/a/", true, "10.0.0.1", "443", "/k8s/clusters/a",
       "10.0.0.1:443"},
      {"https://[fd00::1]:6443", true, "fd00::1", "6443", "", "[fd00::1]:6443"},
      {"https://[fd00::1]", true, "fd00::1", "443", "", "[fd00::1]:443"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto url = parse_server_url(row.text);
    REQUIRE(url);
    CHECK(url->is_tls == row.is_tls);
    CHECK(url->host == row.host);
    CHECK(url->port == row.port);
    CHECK(url->base_path == row.base);
    CHECK(url->authority() == row.authority);
  }
}

TEST_CASE("servers that cannot be used are quoted") {
  for (const char* const text :
       {"", "host:6443", "ftp://host", "https://", "https://:6443", "https://host:port",
        "https://host:123456", "https://host:65536", "https://user@host", "https://host/a?b",
        "https://[fd00::1", "https://ho st", "https://host:"}) {
    INFO(text);
    const auto url = parse_server_url(text);
    REQUIRE_FALSE(url);
    CHECK(url.error().code == ErrorCode::kInvalid);
    CHECK_THAT(url.error().message, Catch::Contains('"' + std::string(text) + '"'));
  }
}

TEST_CASE("what is not unreserved is escaped") {
  CHECK(percent_encode("aZ0-._~") == "aZ0-._~");
  CHECK(percent_encode("a=b,c in (d)/e\xc3\xa4") == "a%3Db%2Cc%20in%20%28d%29%2Fe%C3%A4");
}
