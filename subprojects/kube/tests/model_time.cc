#include <limits>
#include <random>

#include "kube/model/time.hh"
#include "kube/tests/catch.hh"

using kube::Time;
using std::chrono::microseconds;

TEST_CASE("times are read with any fraction and offset") {
  struct Case {
    std::string_view text, micro;
  };
  const Case cases[] = {
      {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
      {"2026-08-20T10:00:00Z", "2026-08-20T10:00:00.000000Z"},
      {"2026-08-20T12:00:00.123456+02:00", "2026-08-20T10:00:00.123456Z"},
      {"2026-08-20T00:30:00-05:30", "2026-08-20T06:00:00.000000Z"},
      {"2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000Z"},
      {"2024-02-29T23:59:59.9Z", "2024-02-29T23:59:59.900000Z"},
      {"2026-08-20T10:00:00.1234569999Z", "2026-08-20T10:00:00.123456Z"},
      {"2026-08-20T10:00:00.000001-00:00", "2026-08-20T10:00:00.000001Z"},
      {"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"},
      {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
      {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    const auto time = Time::parse(c.text);
    REQUIRE(time);
    CHECK(time->to_micro_string() == c.micro);
    CHECK(time->to_string() == time->whole_seconds().to_string());
    CHECK(Time::parse(time->to_micro_string()) == time);
  }
}

TEST_CASE("what is no RFC 3339 time is refused") {
  for (const auto text : {"",
                          "2026-08-20",
                          "2026-08-20T10:00:00",
                          "2026-08-20 10:00:00Z",
                          "2026-08-20t10:00:00Z",
                          "2026-08-20T10:00:00z",
                          "2026-08-20T10:00Z",
                          "2026-8-20T10:00:00Z",
                          "2026-02-29T10:00:00Z",
                          "2026-13-01T10:00:00Z",
                          "2026-00-01T10:00:00Z",
                          "2026-01-00T10:00:00Z",
                          "2026-08-20T24:00:00Z",
                          "2026-08-20T10:60:00Z",
                          "2026-08-20T10:00:60Z",
                          "2026-08-20T10:00:00.Z",
                          "2026-08-20T10:00:00,5Z",
                          "2026-08-20T10:00:00+2:00",
                          "2026-08-20T10:00:00+0200",
                          "2026-08-20T10:00:00+24:00",
                          "2026-08-20T10:00:00+02:60",
                          "2026-08-20T10:00:00Z ",
                          " 2026-08-20T10:00:00Z",
                          "-026-08-20T10:00:00Z",
                          "12026-08-20T10:00:00Z",
                          "null"}) {
    INFO(text);
    CHECK_FALSE(Time::parse(text));
  }
}

TEST_CASE("times before 1970 round down like all others") {
  const Time time = *Time::parse("1969-12-31T23:59:58.25Z");
  CHECK(time.seconds() == -2);
  CHECK(time.to_string() == "1969-12-31T23:59:58Z");
  CHECK(time.whole_seconds() == Time::from_seconds(-2));
}

TEST_CASE("times order and subtract") {
  const Time early = Time::from_seconds(1'000'000'000);
  const Time late = early + microseconds(1);
  CHECK(early < late);
  CHECK(late - early == microseconds(1));
  CHECK(late.whole_seconds() == early);
  CHECK(early.to_string() == "2001-09-09T01:46:40Z");
  CHECK(Time() == Time::from_seconds(0));
}

TEST_CASE("any number of seconds later is within a century") {
  const Time now = Time::from_seconds(1'800'000'000);
  CHECK(now.after(90) == now + std::chrono::seconds(90));
  CHECK(now.after(-90) == now + std::chrono::seconds(-90));
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t huge : {10'000'000'000, 10'000'000'000'000, kMax}) {
    INFO(huge);
    CHECK(now.after(huge) == now.after(100LL * 365 * 24 * 3600));
    CHECK(now.after(-huge) == now.after(-100LL * 365 * 24 * 3600));
  }
}

TEST_CASE("every time survives its text") {
  std::mt19937_64 random(41);
  for (int i = 0; i < 5000; ++i) {
    // From the year 1 to the year 9999.
    std::uniform_int_distribution<std::int64_t> seconds(-62'135'596'800, 253'402'300'799);
    const Time time = Time::from_seconds(seconds(random)) + microseconds(random() % 1'000'000);
    INFO(time.to_micro_string());
    REQUIRE(Time::parse(time.to_micro_string()) == time);
    REQUIRE(Time::parse(time.to_string()) == time.whole_seconds());
  }
}
