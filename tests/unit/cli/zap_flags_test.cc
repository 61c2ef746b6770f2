#include "controller/cli/zap_flags.hh"

#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("levels of upstream's logger become log levels") {
  struct Case {
    const char* text;
    std::optional<std::string> level;
  };
  for (const Case& c :
       {Case{"debug", "debug"}, Case{"Info", "info"}, Case{"error", "error"},
        Case{"panic", "error"}, Case{"1", "info"}, Case{"2", "info"}, Case{"3", "info"},
        Case{"4", "debug"}, Case{"10", "debug"}, Case{"0", std::nullopt}, Case{"-1", std::nullopt},
        Case{"2x", std::nullopt}, Case{"warn", std::nullopt}, Case{"", std::nullopt}}) {
    CAPTURE(c.text);
    CHECK(level_of_zap(c.text) == c.level);
  }
}

TEST_CASE("encoders of upstream's logger become log formats") {
  CHECK(format_of_zap("json") == LogFormat::kJson);
  CHECK(format_of_zap("console") == LogFormat::kText);
  CHECK_FALSE(format_of_zap("text"));
}
