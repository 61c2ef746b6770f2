#include <limits>
#include <random>

#include "kube/model/quantity.hh"
#include "kube/tests/catch.hh"

using kube::Json;
using kube::Quantity;

namespace {

Quantity parse(std::string_view text) {
  const auto quantity = Quantity::parse(text);
  if (!quantity) FAIL(quantity.error().message);
  return *quantity;
}

}  // namespace

// Each line is what resource.ParseQuantity of apimachinery v0.34 answers: CanonicalizeBytes, Value,
// MilliValue.
TEST_CASE("quantities have upstream's canonical form and values") {
  struct Case {
    std::string_view text, canonical;
    std::int64_t value;
  };
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const Case cases[] = {
      {"0", "0", 0},
      {"-0", "0", 0},
      {"0Gi", "0", 0},
      {"1", "1", 1},
      {"+5", "5", 5},
      {"012", "12", 12},
      {"100m", "100m", 1},
      {"1000m", "1", 1},
      {"2500m", "2500m", 3},
      {"-2500m", "-2500m", -3},
      {"1.5", "1500m", 2},
      {".5", "500m", 1},
      {"1.", "1", 1},
      {"1.G", "1G", 1000000000},
      {"1.234", "1234m", 2},
      {"1k", "1k", 1000},
      {"1000k", "1M", 1000000},
      {"1500k", "1500k", 1500000},
      {"1E", "1E", 1000000000000000000},
      {"100E", "100E", kMax},
      {"1e3", "1e3", 1000},
      {"1E3", "1e3", 1000},
      {"1e+3", "1e3", 1000},
      {"12e4", "120e3", 120000},
      {"1.5e3", "1500", 1500},
      {"1e-3", "1e-3", 1},
      {"5e-10", "1e-9", 1},
      {"1e1", "10", 10},
      {"1Ki", "1Ki", 1024},
      {"0.5Gi", "512Mi", 536870912},
      {"1.5Gi", "1536Mi", 1610612736},
      {"1024Ki", "1Mi", 1048576},
      {"1023Ki", "1023Ki", 1047552},
      {"0.5Ki", "512", 512},
      {"1.1Ki", "1126400m", 1127},
      {"0.0001Ki", "102400u", 1},
      {"9Ei", "9223372036854775807", kMax},
      {"-9Ei", "-9223372036854775807", -kMax},
      {"7Ei", "7Ei", 8070450532247928832},
      {"1n", "1n", 1},
      {"1u", "1u", 1},
      {"0.1n", "1n", 1},
      {"-0.1n", "-1n", -1},
      {"1.0000000001", "1000000001n", 2},
      {"0.00000000000000000001E", "10m", 1},
      {"1000000000000000000000", "1000E", kMax},
      {"1e40", "10e27", kMax},
      {"1e999999999999", "10e27", kMax},
      {"1e-999999999999", "1e-9", 1},
      {"0e999999999999", "0", 0},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    const Quantity quantity = parse(c.text);
    CHECK(quantity.to_string() == c.canonical);
    CHECK(quantity.value() == c.value);
    CHECK(parse(quantity.to_string()) == quantity);
  }
}

TEST_CASE("malformed quantities are refused with their text") {
  for (const auto text :
       {"",      "+",     "-",    ".",    "m",     "Gi",    "1Gb",   "1 Gi", " 1",
        "1gi",   "1K",    "1e",   "1Ki3", "1e3Ki", "1e3.5", "1.2.3", "--1",  "+-1",
        "1e--3", "1e+-3", "0x10", "1,5",  "inf",   "nan",   "١"}) {
    INFO(text);
    const auto quantity = Quantity::parse(text);
    REQUIRE_FALSE(quantity);
    CHECK(quantity.error().message.find("\"" + std::string(text) +
                                        "\" is no quantity; write a number") == 0);
    CHECK(quantity.error().code == kube::ErrorCode::kInvalid);
  }
}

TEST_CASE("quantities are read from strings and numbers") {
  CHECK(Quantity::read(Json("2Gi"))->to_string() == "2Gi");
  CHECK(Quantity::read(Json(" 2Gi\n"))->to_string() == "2Gi");
  CHECK(Quantity::read(Json(3))->to_string() == "3");
  CHECK(Quantity::read(Json(0.5))->to_string() == "500m");
  CHECK(Quantity::read(Json(1e21))->value() == std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(Quantity::read(Json("")));
  CHECK_FALSE(Quantity::read(Json("  ")));
  CHECK(Quantity::read(Json(true)).error().message ==
        "a quantity must be a string or a number, not boolean");
  CHECK(Quantity::of(2048, Quantity::Format::kBinarySI).to_string() == "2Ki");
  CHECK(Quantity::of(std::numeric_limits<std::int64_t>::min()).value() ==
        std::numeric_limits<std::int64_t>::min());
}

// Each line is what Quantity.Add or Sub of apimachinery v0.34 answers.
TEST_CASE("a sum keeps the format of its first term that is not zero") {
  struct Case {
    std::string_view a;
    char op;
    std::string_view b, result;
  };
  const Case cases[] = {
      {"12Mi", '+', "1M", "13582912"}, {"1M", '+', "12Mi", "13582912"}, {"1Mi", '+', "1Mi", "2Mi"},
      {"1Mi", '+', "1024", "1025Ki"},  {"1024", '+', "1Mi", "1049600"}, {"0", '+', "1Ki", "1Ki"},
      {"0", '+', "1e3", "1e3"},        {"1e3", '+', "1k", "2e3"},       {"1500m", '+', "0.5", "2"},
      {"1Gi", '-', "1Gi", "0"},        {"1Ki", '-', "1025", "-1"},      {"0", '-', "1Ki", "-1Ki"},
      {"1", '-', "1m", "999m"},        {"7Ei", '+', "7Ei", "14Ei"},
  };
  for (const auto& c : cases) {
    INFO(c.a << c.op << c.b);
    Quantity result = parse(c.a);
    Quantity other = parse(c.b);
    if (c.op == '-') other *= -1;
    result += other;
    CHECK(result.to_string() == c.result);
  }
}

TEST_CASE("quantities compare by amount and cannot overflow") {
  CHECK(parse("1Ki") == parse("1024"));
  CHECK(parse("1000m") == parse("1"));
  CHECK(parse("999m") < parse("1"));
  CHECK(parse("-1") < parse("0"));
  CHECK(parse("0Mi").is_zero());
  Quantity large = parse("1e28");
  large += large;
  CHECK(large == parse("1e28"));
  large *= std::numeric_limits<std::int64_t>::max();
  CHECK(large == parse("1e28"));
  large *= -1;
  CHECK(large == parse("-1e28"));
  large += parse("-1e28");
  CHECK(large == parse("-1e28"));
  large *= 0;
  CHECK(large.is_zero());
  Quantity three = parse("1500m");
  three *= 2;
  CHECK(three.to_string() == "3");
}

TEST_CASE("the canonical form of any amount reads back as the same amount") {
  std::mt19937_64 random(31);
  const char* const suffixes[] = {"n", "u",  "m",  "",   "k",  "M",  "G",   "T",  "P",
                                  "E", "Ki", "Mi", "Gi", "Ti", "Pi", "e-7", "e5", "E12"};
  for (int i = 0; i < 20000; ++i) {
    std::string text = random() % 4 == 0 ? "-" : "";
    text += std::to_string(random() >> random() % 64);
    if (random() % 2 == 0) text += "." + std::to_string(random() >> random() % 64);
    text += suffixes[random() % std::size(suffixes)];
    INFO(text);
    const Quantity quantity = parse(text);
    const std::string canonical = quantity.to_string();
    INFO(canonical);
    REQUIRE(canonical.find('.') == std::string::npos);
    REQUIRE(parse(canonical) == quantity);
    REQUIRE(parse(canonical).to_string() == canonical);
    Quantity doubled = quantity;
    doubled += quantity;
    Quantity twice = quantity;
    twice *= 2;
    REQUIRE(doubled == twice);
    Quantity negative = quantity;
    negative *= -1;
    doubled += negative;
    if (twice < parse("1e27") && parse("-1e27") < twice) REQUIRE(doubled == quantity);
  }
}
