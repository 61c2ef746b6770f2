#include "controller/config/values.hh"

#include <string>

#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("durations are read as Go prints them") {
  struct Case {
    const char* text;
    std::int64_t milliseconds;
  };
  for (const Case& c : {Case{"0", 0},
                        {"15s", 15'000},
                        {"1m30s", 90'000},
                        {"1.5h", 5'400'000},
                        {"250ms", 250},
                        {"2h45m", 9'900'000},
                        {"1000us", 1},
                        {".5s", 500}}) {
    CAPTURE(c.text);
    const auto duration = parse_duration(c.text);
    REQUIRE(duration);
    CHECK(duration->count() == c.milliseconds);
  }
  for (const char* text : {"", "15", "s", "-15s", "15 s", "1d", "1e3s", "15s,", "1..5s",
                           "99999999999h", "1e999h", "nan", "inf"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("addresses are a host, perhaps none, and a port") {
  CHECK(parse_endpoint(":8081") == Endpoint{"", 8081});
  CHECK(parse_endpoint("127.0.0.1:0") == Endpoint{"127.0.0.1", 0});
  CHECK(parse_endpoint("[::1]:443") == Endpoint{"::1", 443});
  CHECK(parse_endpoint("host.example:65535") == Endpoint{"host.example", 65535});
  for (const char* text : {"", "8081", ":", "host:", "host:65536", "host:-1", "::1:80", "host:80x",
                           "a b:1", "http://host:80", "[::1:80"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_endpoint(text));
  }
}

TEST_CASE("a webhook URL is https, a host and perhaps a port") {
  CHECK(parse_https_url("https://10.88.0.1:9443") == Endpoint{"10.88.0.1", 9443});
  CHECK(parse_https_url("https://trainer.example/") == Endpoint{"trainer.example", 443});
  CHECK(parse_https_url("https://[fd00::1]:9443") == Endpoint{"fd00::1", 9443});
  CHECK(parse_https_url("https://[fd00::1]") == Endpoint{"fd00::1", 443});
  for (const char* text : {"", "10.88.0.1:9443", "http://h:1", "https://", "https://:9443",
                           "https://h:1/path", "https://u@h:1", "https://h:1?x=y"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_https_url(text));
  }
}
