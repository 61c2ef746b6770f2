#include "kube/model/field_error.hh"
#include "kube/tests/catch.hh"

using kube::FieldError;
using kube::FieldErrors;
using kube::Json;

// Each text is what field.Error.Error() of apimachinery v0.34 prints.
TEST_CASE("field errors print as upstream's") {
  using Type = FieldError::Type;
  struct Case {
    FieldError error;
    std::string_view text;
  };
  const Case cases[] = {
      {kube::invalid("spec.n", -1, "must be at least 0"),
       "spec.n: Invalid value: -1: must be at least 0"},
      {kube::invalid("a", "x\"y\\\n\t\x01\x7f\xc3\xa9", ""),
       "a: Invalid value: \"x\\\"y\\\\\\n\\t\\x01\\x7f\xc3\xa9\""},
      {kube::invalid("a", true, "d"), "a: Invalid value: true: d"},
      {kube::invalid("a", 3.0, "d"), "a: Invalid value: 3: d"},
      {kube::invalid("a", 0.25, "d"), "a: Invalid value: 0.25: d"},
      {kube::invalid("a", 1e21, "d"), "a: Invalid value: 1e+21: d"},
      {kube::invalid("a", 1e20, "d"), "a: Invalid value: 100000000000000000000: d"},
      {kube::invalid("a", 0.00001, "d"), "a: Invalid value: 1e-05: d"},
      {kube::invalid("a", nullptr, "d"), "a: Invalid value: null: d"},
      {kube::invalid("a", Json::array({1, "x"}), "d"), "a: Invalid value: [1,\"x\"]: d"},
      {kube::invalid("a", Json::object({{"k", "v"}}), "d"), "a: Invalid value: {\"k\":\"v\"}: d"},
      {kube::invalid("", "x", "d"), "<nil>: Invalid value: \"x\": d"},
      {kube::required("a", "must be set"), "a: Required value: must be set"},
      {kube::required("a", ""), "a: Required value"},
      {kube::forbidden("a", "may not change"), "a: Forbidden: may not change"},
      {kube::not_supported("a", "x", {"Always", "Never"}),
       "a: Unsupported value: \"x\": supported values: \"Always\", \"Never\""},
      {kube::not_supported("a", "x", {}), "a: Unsupported value: \"x\""},
      {kube::duplicate("a[1]", "x"), "a[1]: Duplicate value: \"x\""},
      {kube::too_long("a", 63), "a: Too long: may not be more than 63 bytes"},
      {kube::too_long("a", 1), "a: Too long: may not be more than 1 byte"},
      {kube::too_many("a", 12, 10), "a: Too many: 12: must have at most 10 items"},
      {kube::too_many("a", 2, 1), "a: Too many: 2: must have at most 1 item"},
      {{Type::kTypeInvalid, "a", "x", "must be a number"},
       "a: Invalid value: \"x\": must be a number"},
      {{Type::kInternal, "a", "hidden", "broken"}, "a: Internal error: broken"},
  };
  for (const auto& c : cases) CHECK(c.error.to_string() == c.text);
}

TEST_CASE("long values are cut between characters") {
  const std::string text = kube::invalid("a", std::string(1000, 'x'), "d").to_string();
  CHECK(text == "a: Invalid value: \"" + std::string(299, 'x') + "...: d");
  std::string accents;
  for (int i = 0; i < 300; ++i) accents += "\xc3\xa9";
  const std::string cut = kube::invalid("a", accents, "d").to_string();
  CHECK(cut == "a: Invalid value: \"" + accents.substr(0, 298) + "...: d");
}

TEST_CASE("lists print as upstream's aggregate") {
  const FieldError a = kube::required("a", "");
  const FieldError b = kube::required("b", "");
  CHECK(kube::to_string(FieldErrors{}) == "");
  CHECK(kube::to_string(FieldErrors{a}) == "a: Required value");
  CHECK(kube::to_string(FieldErrors{a, a}) == "a: Required value");
  CHECK(kube::to_string(FieldErrors{a, b, a}) == "[a: Required value, b: Required value]");
}

TEST_CASE("paths join") {
  CHECK(kube::join_field("spec.a", "b") == "spec.a.b");
  CHECK(kube::join_field("", "b") == "b");
  CHECK(kube::join_index("spec.items", 3) == "spec.items[3]");
  CHECK(kube::join_key("labels", "x/y") == "labels[x/y]");
}
