#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kube/client/token_source.hh"
#include "kube/tests/catch.hh"

using namespace kube;
namespace fs = std::filesystem;

TEST_CASE("a token without a file") {
  const TokenSource::Now now{};
  CHECK(TokenSource(Secret<std::string>(""), "").authorization(now).reveal().empty());
  TokenSource fixed(Secret<std::string>("abc"), "");
  CHECK(fixed.authorization(now).reveal() == "Bearer abc");
  CHECK_FALSE(fixed.refresh(now));
}

TEST_CASE("a token file is looked into once a minute, and on demand") {
  const fs::path path = fs::temp_directory_path() / ("kube-tokens-" + std::to_string(::getpid()));
  const auto write = [&path](const std::string& text) { std::ofstream(path) << text; };
  const TokenSource::Now start{std::chrono::hours(1)};
  write("one\n");
  TokenSource source(Secret<std::string>("fallback"), path.string());
  CHECK(source.authorization(start).reveal() == "Bearer one");

  write("two");
  CHECK(source.authorization(start + std::chrono::seconds(59)).reveal() == "Bearer one");
  CHECK(source.authorization(start + std::chrono::seconds(60)).reveal() == "Bearer two");
  CHECK_FALSE(source.refresh(start + std::chrono::seconds(61)));

  write("three");
  CHECK(source.refresh(start + std::chrono::seconds(62)));
  CHECK(source.authorization(start + std::chrono::seconds(63)).reveal() == "Bearer three");

  // It has changed already when the second of two requests comes back.
  const Secret<std::string> old("Bearer two");
  const Secret<std::string> current("Bearer three");
  CHECK(source.has_other_than(old, start + std::chrono::seconds(64)));
  CHECK(source.has_other_than(old, start + std::chrono::seconds(65)));
  CHECK_FALSE(source.has_other_than(current, start + std::chrono::seconds(66)));

  for (const char* const text : {"", "\n", "a\r\nInjected: yes", "two words"}) {
    INFO(text);
    write(text);
    CHECK_FALSE(source.refresh(start + std::chrono::minutes(5)));
    CHECK(source.authorization(start + std::chrono::minutes(5)).reveal() == "Bearer three");
  }
  fs::remove(path);
  CHECK_FALSE(source.refresh(start + std::chrono::minutes(9)));
  CHECK(source.authorization(start + std::chrono::minutes(9)).reveal() == "Bearer three");
}
